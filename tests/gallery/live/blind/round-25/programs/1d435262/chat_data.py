import torch

from stages import SEQ, VOCAB


def chat_batches(batch_size, seed=3):
    """Packed chat turns; only the answer tokens carry labels."""
    g = torch.Generator().manual_seed(seed)
    while True:
        ids = torch.randint(0, VOCAB, (batch_size, SEQ), generator=g)
        labels = ids.roll(-1, dims=1)
        labels[:, -1] = -100
        prompt_len = torch.randint(2, SEQ + 1, (batch_size,), generator=g)
        prompt_len[torch.rand(batch_size, generator=g) < 0.25] = 2
        labels[torch.arange(SEQ)[None, :] < prompt_len[:, None]] = -100
        yield ids, labels
