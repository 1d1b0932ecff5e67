import random

import torch


def build_documents(n, seed):
    rng = random.Random(seed)
    docs = []
    for _ in range(n):
        length = int(min(400, max(12, rng.lognormvariate(4.2, 0.8))))
        start = rng.randrange(1, 300)
        docs.append([1 + (start + 7 * i + rng.randrange(3)) % 383 for i in range(length)])
    return docs


class PackedStream:
    def __init__(self, docs, seq_len, batch, repeat):
        self.docs, self.seq_len, self.batch, self.repeat = docs, seq_len, batch, repeat

    def _tokens(self):
        while True:
            for doc in self.docs:
                yield from doc
                yield 0
            if not self.repeat:
                return

    def _rows(self):
        buf = []
        for tok in self._tokens():
            buf.append(tok)
            if len(buf) == self.seq_len + 1:
                yield torch.tensor(buf)
                buf = buf[-1:]

    def __iter__(self):
        rows = []
        for row in self._rows():
            rows.append(row)
            if len(rows) == self.batch:
                block = torch.stack(rows)
                yield block[:, :-1], block[:, 1:]
                rows = []
