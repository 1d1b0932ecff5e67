import time


class StoreBarrier:
    """Rendezvous of all trainers through the control-plane store."""

    def __init__(self, store, rank, world_size, poll_s):
        self.store = store
        self.rank = rank
        self.world_size = world_size
        self.poll_s = poll_s

    def wait(self, tag):
        key = f"barrier/{tag}"
        self.store.add(key, 1)
        while self.store.add(key, 0) < self.world_size:
            time.sleep(self.poll_s)
        if self.rank == 0:
            self.store.delete_key(key)
