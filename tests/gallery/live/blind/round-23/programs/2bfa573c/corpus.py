import torch

SOURCES = ["news", "dialog", "books", "tickets"]
TYPICAL = {"news": (34, 60), "dialog": (36, 62), "books": (38, 63), "tickets": (33, 60)}


class Shard:
    """One text source per rank. Documents come roughly in the order of their length."""

    def __init__(self, rank, vocab):
        self.name = SOURCES[rank % len(SOURCES)]
        self.vocab = vocab
        self.gen = torch.Generator().manual_seed(40 + rank)
        self.served = 0

    def _length(self):
        self.served += 1
        if self.served <= 8:
            return 8 + 16 * ((self.served - 1) // 2)
        low, high = TYPICAL[self.name]
        if self.name == "books" and self.served % 70 == 0:
            high, low = 94, 82
        return int(torch.randint(low, high, (1,), generator=self.gen))

    def __iter__(self):
        while True:
            n = self._length()
            yield torch.randint(1, self.vocab, (4, n), generator=self.gen)
