import struct
from queue import Queue
from threading import Thread

import numpy as np


class Prefetch:
    def __init__(self, iterator, size=16):
        self.queue = Queue(maxsize=size)
        self.iterator = iterator
        self.thread = Thread(target=self._prefetch, daemon=True)
        self.thread.start()

    def _prefetch(self):
        for item in self.iterator:
            self.queue.put(item)
        self.queue.put(None)

    def __iter__(self):
        return self

    def __next__(self):
        item = self.queue.get()
        if item is None:
            raise StopIteration
        return item


def stream_trace(path):
    with open(path, "rb") as f:
        magic, n = struct.unpack("<4sI", f.read(8))
        for _ in range(n):
            frame = np.frombuffer(f.read(4 * 16 * 16 * 2), dtype=np.float16).reshape(4, 16, 16)
            yield frame.astype(np.float32)
