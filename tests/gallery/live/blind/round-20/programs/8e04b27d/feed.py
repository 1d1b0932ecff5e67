import queue
import threading
import time

import torch


class SampleFeed:
    """Collects scored samples in the background, as the scorer hands them over."""

    def __init__(self, seed, batch, dim, period=0.05):
        self._gen = torch.Generator().manual_seed(seed)
        self._q = queue.Queue(maxsize=16)
        self._shape = (batch, dim)
        self._period = period
        threading.Thread(target=self._run, name="scorer", daemon=True).start()

    def _run(self):
        while True:
            x = torch.randn(*self._shape, generator=self._gen)
            self._q.put({"x": x, "score": x.mean(dim=1, keepdim=True)})
            time.sleep(self._period)

    def poll(self, limit=2):
        items = []
        while len(items) < limit:
            try:
                items.append(self._q.get_nowait())
            except queue.Empty:
                break
        return items
