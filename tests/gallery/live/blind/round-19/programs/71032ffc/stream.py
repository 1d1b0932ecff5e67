import torch


class PackedStream:
    """Packs documents of different length into rows of `seq` tokens; can be saved and restored."""

    def __init__(self, rank, world, seq=64, vocab=512):
        self.rank, self.world, self.seq, self.vocab = rank, world, seq, vocab
        self.doc = rank
        self.rest = torch.empty(0, dtype=torch.long)
        self.pending = None

    def _document(self, index):
        g = torch.Generator().manual_seed(index)
        n = int(torch.randint(20, 180, (), generator=g))
        if index % 4099 == 4:
            n = 12000
        return torch.randint(0, self.vocab, (n,), generator=g).cumsum(0) % self.vocab

    def _next_piece(self):
        if self.pending is not None:
            piece = next(self.pending, None)
            if piece is not None:
                return piece
            self.pending = None
        doc = self._document(self.doc)
        self.doc += self.world
        if len(doc) > 8 * self.seq:
            self.pending = (p for p in doc.split(self.seq))
            return next(self.pending)
        return doc

    def row(self):
        while len(self.rest) < self.seq + 1:
            self.rest = torch.cat([self.rest, self._next_piece()])
        out, self.rest = self.rest[: self.seq + 1], self.rest[self.seq :]
        return out

    def batch(self, n):
        return torch.stack([self.row() for _ in range(n)])

    def state_dict(self):
        return {"doc": self.doc, "rest": self.rest, "pending": self.pending}
