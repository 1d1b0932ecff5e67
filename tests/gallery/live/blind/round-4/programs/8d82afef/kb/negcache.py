import os
import pickle
import random
import time

from filelock import FileLock


class NegativeCache:
    def __init__(self, root, entities, rank):
        self.path = os.path.join(root, "negatives.pkl")
        self.lock = FileLock(self.path + ".lock")
        self.entities, self.rank = entities, rank
        self.rng = random.Random(rank)
        self.pool = []

    def refresh(self, log):
        t0 = time.time()
        with self.lock:
            waited = time.time() - t0
            data = {}
            if os.path.exists(self.path):
                with open(self.path, "rb") as f:
                    data = pickle.load(f)
            end = time.time() + 2.2
            pool = set()
            while time.time() < end:
                pool.update(self.rng.randrange(self.entities) for _ in range(200))
                time.sleep(0.02)
            data[self.rank] = sorted(pool)
            with open(self.path + ".tmp", "wb") as f:
                pickle.dump(data, f)
            os.replace(self.path + ".tmp", self.path)
        self.pool = [e for v in data.values() for e in v]
        log(f"waiting for negatives lock took {waited:.1f}s, cache has {len(self.pool)} ids")
