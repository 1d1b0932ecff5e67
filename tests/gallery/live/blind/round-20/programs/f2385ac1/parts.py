import threading
import time

import torch

SECONDS_PER_PART = 3.0


class PartLoader:
    """Fetches part after part of the corpus; sizes vary a little from rank to rank."""

    def __init__(self, rank, dim=128):
        self.rank, self.dim = rank, dim
        self._slot = None
        self._begin(0)

    def _fetch(self, number):
        gen = torch.Generator().manual_seed(number * 31 + self.rank)
        time.sleep(SECONDS_PER_PART)
        n = 480 + 2 * ((number + self.rank) % 3)
        lengths = [24, 32, 40, 32]
        self._slot = [torch.randn(lengths[i % 4], self.dim, generator=gen) for i in range(n)]

    def _begin(self, number):
        self._thread = threading.Thread(target=self._fetch, args=(number,), name=f"fetch-{number}", daemon=True)
        self._thread.start()

    def take(self, number):
        self._thread.join()
        part = self._slot
        return part

    def prepare(self, number):
        self._begin(number)
