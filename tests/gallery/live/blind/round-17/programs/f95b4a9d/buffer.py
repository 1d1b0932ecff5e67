import json
import os
import queue
import subprocess
import sys
import threading


class RolloutBuffer:
    """Keeps a few batches ahead of the trainer; weight updates go through the same thread."""

    def __init__(self, rank, vocab, n=16, length=24, depth=6):
        here = os.path.dirname(os.path.abspath(__file__))
        self.proc = subprocess.Popen(
            [sys.executable, os.path.join(here, "sampler.py"), str(rank), str(vocab)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        self.request = {"op": "sample", "n": n, "length": length}
        self.ready = queue.Queue(maxsize=depth)
        self.updates = queue.Queue()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, name="rollout-buffer", daemon=True)
        self.thread.start()

    def _call(self, cmd):
        self.proc.stdin.write(json.dumps(cmd) + "\n")
        self.proc.stdin.flush()
        return json.loads(self.proc.stdout.readline())

    def _run(self):
        while not self.stop.is_set():
            try:
                cmd, done = self.updates.get_nowait()
                self._call(cmd)
                done.set()
                continue
            except queue.Empty:
                pass
            batch = self._call(self.request)
            while not self.stop.is_set():
                try:
                    self.ready.put(batch, timeout=0.02)
                    break
                except queue.Full:
                    if not self.updates.empty():
                        cmd, done = self.updates.get()
                        self._call(cmd)
                        done.set()

    def next(self):
        return self.ready.get()

    def push_weights(self, version, bias):
        done = threading.Event()
        self.updates.put(({"op": "weights", "version": version, "bias": bias}, done))
        done.wait()

    def close(self):
        self.stop.set()
        self.proc.terminate()
