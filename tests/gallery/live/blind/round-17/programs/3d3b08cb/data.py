import torch

TEXT = (
    "the optimizer moves downhill and the loss follows, until a plateau asks for patience. "
    "a second look at the data is worth more than a third look at the model. "
    "every checkpoint is a promise to the next run that nothing was wasted. "
) * 40


class CharData:
    def __init__(self, rank, world_size, seq=48, batch=16):
        self.chars = sorted(set(TEXT))
        index = {c: i for i, c in enumerate(self.chars)}
        self.ids = torch.tensor([index[c] for c in TEXT])
        self.seq, self.batch = seq, batch
        self.gen = torch.Generator().manual_seed(rank)
        self.steps_per_epoch = len(self.ids) // (seq * batch * world_size) * 10

    def epoch(self):
        for _ in range(self.steps_per_epoch):
            start = torch.randint(0, len(self.ids) - self.seq - 1, (self.batch,), generator=self.gen)
            block = torch.stack([self.ids[s:s + self.seq + 1] for s in start.tolist()])
            yield block[:, :-1], block[:, 1:]
