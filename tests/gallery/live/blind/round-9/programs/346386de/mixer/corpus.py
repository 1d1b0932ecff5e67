from dataclasses import dataclass

import numpy as np
import torch


@dataclass(slots=True)
class Span:
    doc: int
    start: int
    length: int


class DomainCorpus:
    """Documents of one domain with an in-memory index of their spans."""

    def __init__(self, name, num_spans, vocab=2048, tokens=2_000_000, seed=0):
        self.name = name
        rng = np.random.default_rng(seed)
        base = rng.integers(0, vocab, 4096)
        self.tokens = torch.from_numpy(np.tile(base, tokens // 4096 + 1)[:tokens].astype(np.int32))
        starts = rng.integers(0, tokens - 256, num_spans)
        lengths = rng.integers(64, 256, num_spans)
        self.spans = [Span(i, s, n) for i, (s, n) in enumerate(zip(starts.tolist(), lengths.tolist()))]
        self.rng = rng

    def sample(self, batch, ctx):
        out = torch.empty(batch, ctx + 1, dtype=torch.long)
        for row, i in enumerate(self.rng.integers(0, len(self.spans), batch)):
            s = self.spans[i]
            out[row] = self.tokens[s.start : s.start + ctx + 1]
        return out[:, :-1], out[:, 1:]
