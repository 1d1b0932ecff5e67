"""Collect evaluation results of all ranks through the store (no tensors involved)."""
import json


class Scoreboard:
    def __init__(self, store, rank, world):
        self.store, self.rank, self.world = store, rank, world

    def publish(self, round_id, scores):
        self.store.set(f"score/{round_id}/{self.rank}", json.dumps(scores))

    def collect(self, round_id):
        keys = [f"score/{round_id}/{r}" for r in range(self.world)]
        self.store.wait(keys)
        parts = [json.loads(self.store.get(k)) for k in keys]
        hits = sum(p["hits"] for p in parts)
        total = sum(p["total"] for p in parts)
        return hits / max(total, 1)
