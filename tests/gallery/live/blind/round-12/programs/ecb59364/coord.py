import time

import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store


class StoreBarrier:
    """Barrier over the rendezvous store, so that file I/O stays off the process group."""

    def __init__(self, name):
        self.store = dist.PrefixStore(name, _get_default_store())
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.generation = 0

    def _key(self, rank):
        return f"arrival_{self.generation}_{rank}"

    def _await(self, key):
        delay = 0.01
        while not self.store.check([key]):
            time.sleep(delay)
            delay = min(2 * delay, 1.0)

    def wait(self):
        self.store.set(self._key(self.rank), "1")
        for r in range(self.world):
            self._await(self._key(r))
        if self.rank == 0:
            for r in range(self.world):
                self.store.delete_key(self._key(r))
        self.generation += 1
