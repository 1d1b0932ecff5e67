import pickle


class Exchange:
    """Gather to rank 0 and scatter from it, over the job's key-value store."""

    def __init__(self, store, rank, world):
        self.store, self.rank, self.world = store, rank, world
        self.seq = 0

    def gather(self, obj):
        self.seq += 1
        key = f"gather/{self.seq}"
        if self.rank != 0:
            self.store.set(f"{key}/{self.rank}", pickle.dumps(obj))
            return None
        out = [obj]
        for src in range(1, self.world):
            out.append(pickle.loads(self.store.get(f"{key}/{src}")))
            self.store.delete_key(f"{key}/{src}")
        return out

    def scatter(self, objs):
        self.seq += 1
        key = f"scatter/{self.seq}"
        if self.rank == 0:
            for dst in range(1, self.world):
                self.store.set(f"{key}/{dst}", pickle.dumps(objs[dst]))
            return objs[0]
        out = pickle.loads(self.store.get(f"{key}/{self.rank}"))
        self.store.delete_key(f"{key}/{self.rank}")
        return out
