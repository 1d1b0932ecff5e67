import threading
import weakref

import torch


class ClipHandle:
    """An opened clip; its buffers count against the store until it is dropped."""

    def __init__(self, name, frames):
        self.name = name
        self.frames = frames
        self.parts = []

    def split(self, n_parts):
        size = len(self.frames) // n_parts
        for i in range(n_parts):
            self.parts.append(ClipPart(self, i * size, (i + 1) * size))
        return self.parts


class ClipPart:
    def __init__(self, clip, start, stop):
        self.clip = clip
        self.start = start
        self.stop = stop

    def decode(self, generator):
        base = torch.tensor([f["offset"] for f in self.clip.frames[self.start:self.stop]], dtype=torch.float32)
        base = (base % 97) / 97.0
        return base[:32].repeat(16, 1).t() + 0.1 * torch.randn(32, 16, generator=generator)


class ClipStore:
    def __init__(self, capacity=4096):
        self._mutex = threading.Lock()
        self._leases = {}
        self.capacity = capacity
        self.evicted = 0

    def open(self, record):
        with self._mutex:
            if len(self._leases) >= self.capacity:
                self._leases.pop(next(iter(self._leases)))
                self.evicted += 1
            frames = []
            for i in range(record["n_frames"]):
                frames.append({"pts": i / 25.0, "offset": i * 1315 + record["seed"], "key": i % 12 == 0})
            handle = ClipHandle(record["name"], frames)
            self._leases[record["name"]] = self._leases.get(record["name"], 0) + 1
        weakref.finalize(handle, self.release, record["name"])
        return handle

    def release(self, name):
        with self._mutex:
            left = self._leases.get(name, 0) - 1
            if left > 0:
                self._leases[name] = left
            else:
                self._leases.pop(name, None)

    def open_count(self):
        with self._mutex:
            return sum(self._leases.values())
