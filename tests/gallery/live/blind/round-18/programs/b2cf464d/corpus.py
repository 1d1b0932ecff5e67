import torch


class Shard:
    def __init__(self, index, stage, vocab):
        self.stage = stage
        gen = torch.Generator().manual_seed(17 + index)
        docs = stage.docs_per_shard[index % len(stage.docs_per_shard)]
        chunk = 1000
        zipf = 1.0 / torch.arange(1, vocab + 1).double()
        parts = []
        for start in range(0, docs, chunk):
            n = min(chunk, docs - start)
            parts.append(torch.multinomial(zipf, n * stage.seq_len, replacement=True, generator=gen).view(n, stage.seq_len))
        self.tokens = torch.cat(parts)
        self.gen = gen

    def batch(self, size):
        idx = torch.randint(0, len(self.tokens), (size,), generator=self.gen)
        return self.tokens[idx]
