import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
RECORD = 64 * 4


class PipeSource:
    """Pipe-mode input: one named pipe an epoch, filled by a fetcher process that is paused while we are ahead."""

    def __init__(self, rank, records, high=160, low=32):
        self.records, self.high, self.low = records, high, low
        self.folder = tempfile.mkdtemp(prefix=f"pipe-{rank}-")
        self.fetcher = subprocess.Popen([sys.executable, os.path.join(HERE, "fetcher.py"), str(rank)],
                                        stdin=subprocess.PIPE, text=True)
        self.buffer = queue.Queue()
        self.paused = False
        self.resume = threading.Event()

    def _pause(self, on):
        if on != self.paused:
            self.paused = on
            self.fetcher.send_signal(signal.SIGSTOP if on else signal.SIGCONT)

    def _pump(self, path):
        with open(path, "rb", buffering=0) as pipe:
            while True:
                record = b""
                while len(record) < RECORD:
                    part = pipe.read(RECORD - len(record))
                    if not part:
                        break
                    record += part
                if len(record) < RECORD:
                    break
                self.buffer.put(record)
                if self.buffer.qsize() >= self.high:
                    self._pause(True)
                    self.resume.clear()
                    self.resume.wait()
        self.buffer.put(None)

    def epoch(self, number, batch):
        path = os.path.join(self.folder, f"train_{number}")
        os.mkfifo(path)
        self.fetcher.stdin.write(f"{path} {self.records}\n")
        self.fetcher.stdin.flush()
        threading.Thread(target=self._pump, args=(path,), name="pump", daemon=True).start()
        rows = []
        while (record := self.buffer.get()) is not None:
            rows.append(torch.frombuffer(bytearray(record), dtype=torch.float32))
            if self.paused and self.buffer.qsize() <= self.low:
                self._pause(False)
                self.resume.set()
            if len(rows) == batch:
                yield torch.stack(rows)
                rows = []
        os.unlink(path)

    def close(self):
        self._pause(False)
        self.fetcher.stdin.close()
        self.fetcher.wait()
