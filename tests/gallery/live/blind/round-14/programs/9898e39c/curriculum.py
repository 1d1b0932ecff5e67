import torch

VOCAB = 256
LENGTHS = (24, 32, 48)


class Curriculum:
    """Sequence length by step, the same on all ranks, with a constant number of tokens in a batch."""

    def __init__(self, rank, tokens=768, stage_steps=400):
        self.gen = torch.Generator().manual_seed(31 + rank)
        self.tokens = tokens
        self.stage_steps = stage_steps

    def length(self, step):
        return LENGTHS[min(step // self.stage_steps, len(LENGTHS) - 1)]

    def batch(self, step):
        length = self.length(step)
        start = torch.randint(0, VOCAB, (self.tokens // length, 1), generator=self.gen)
        stride = torch.randint(1, 5, (self.tokens // length, 1), generator=self.gen)
        return (start + stride * torch.arange(length)) % VOCAB
