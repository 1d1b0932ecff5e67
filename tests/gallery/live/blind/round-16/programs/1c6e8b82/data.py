import torch


class PhaseMixture:
    """Token batches following a data schedule: each phase has its own vocabulary mix."""

    def __init__(self, phases, vocab, seq_len, seed):
        self.phases = phases
        self.vocab = vocab
        self.seq_len = seq_len
        self.gen = torch.Generator().manual_seed(seed)
        base = torch.Generator().manual_seed(5)
        self.tables = {
            "general": torch.randperm(vocab, generator=base),
            "code": torch.randperm(vocab, generator=base)[: vocab // 4],
            "dialog": torch.randperm(vocab, generator=torch.Generator().manual_seed(27))[:6],
        }

    def phase(self, step):
        for name, length in self.phases:
            if step < length:
                return name
            step -= length
        return self.phases[-1][0]

    def batch(self, step, size):
        table = self.tables[self.phase(step)]
        idx = torch.randint(len(table), (size, self.seq_len + 1), generator=self.gen)
        tokens = table[idx]
        return tokens[:, :-1], tokens[:, 1:]
