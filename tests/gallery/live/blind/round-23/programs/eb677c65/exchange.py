import io

import torch


class RoundExchange:
    """Outer rounds of local SGD over a key value store. No process group, so a
    trainer can be restarted and take up the round that is under way."""

    def __init__(self, store, index, trainers, keep=3):
        self.store, self.index, self.trainers, self.keep = store, index, trainers, keep

    def _key(self, round_no, index):
        return f"round/{round_no}/{index}"

    def publish(self, round_no, vector):
        buf = io.BytesIO()
        torch.save(vector.half(), buf)
        self.store.set(self._key(round_no, self.index), buf.getvalue())
        if round_no >= self.keep:
            self.store.delete_key(self._key(round_no - self.keep, self.index))

    def average(self, round_no):
        total = None
        for peer in range(self.trainers):
            raw = self.store.get(self._key(round_no, peer))
            vector = torch.load(io.BytesIO(raw), weights_only=True).float()
            total = vector if total is None else total + vector
        return total / self.trainers
