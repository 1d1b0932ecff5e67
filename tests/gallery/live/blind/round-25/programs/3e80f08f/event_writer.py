import json
import os
import queue
import threading
import time


class RotatingFile:
    def __init__(self, logdir, max_bytes):
        self.logdir, self.max_bytes, self.part = logdir, max_bytes, 0
        os.makedirs(os.path.join(logdir, "part-000"))
        self._open()

    def _open(self):
        self.handle = open(os.path.join(self.logdir, f"part-{self.part:03d}", "events.jsonl"), "a")

    def write(self, line):
        if self.handle.tell() + len(line) > self.max_bytes:
            self.handle.close()
            self.part += 1
            self._open()
        self.handle.write(line)
        self.handle.flush()


class _WriterThread(threading.Thread):
    def __init__(self, events, sink):
        super().__init__(name="EventWriter", daemon=True)
        self.events, self.sink, self.error = events, sink, None

    def run(self):
        try:
            while True:
                event = self.events.get()
                self.sink.write(json.dumps(event) + "\n")
                self.events.task_done()
        except Exception as exc:
            self.error = exc


class EventWriter:
    """Asynchronous scalar and histogram log."""

    def __init__(self, logdir, max_queue=64, max_bytes=40_000):
        self.events = queue.Queue(max_queue)
        self.worker = _WriterThread(self.events, RotatingFile(logdir, max_bytes))
        self.worker.start()

    def add_scalar(self, tag, value, step):
        self.events.put({"tag": tag, "value": float(value), "step": step, "wall": time.time()})

    def add_histogram(self, tag, tensor, step, bins=16):
        counts = tensor.detach().float().histc(bins).int().tolist()
        self.events.put({"tag": tag, "hist": counts, "step": step, "wall": time.time()})

    def flush(self):
        self.events.join()


class NullWriter:
    def add_scalar(self, *args):
        pass

    add_histogram = add_scalar

    def flush(self):
        pass
