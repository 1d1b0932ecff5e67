import torch

VOCAB = 96


class TextStream:
    def __init__(self, seed, seq_len=24, batch=4):
        self.gen = torch.Generator().manual_seed(seed)
        self.seq_len, self.batch = seq_len, batch

    def next(self):
        return torch.randint(0, VOCAB, (self.batch, self.seq_len + 1), generator=self.gen)


class Benchmark:
    """Multiple-choice questions in whole batches, spread over data-parallel ranks."""

    def __init__(self, n_questions=76, batch_size=4):
        gen = torch.Generator().manual_seed(5)
        self.questions = torch.randint(0, VOCAB, (n_questions, 20), generator=gen)
        self.answers = torch.randint(0, 4, (n_questions,), generator=gen)
        self.batch_size = batch_size

    def batches(self, dp_rank, dp_size):
        starts = range(0, len(self.answers), self.batch_size)
        for i, lo in enumerate(starts):
            if i % dp_size != dp_rank:
                continue
            yield self.questions[lo : lo + self.batch_size], self.answers[lo : lo + self.batch_size]
