import torch

SPECIAL = {"<|bos|>": 0, "<|eos|>": 1}
SHARD_EXTRA = {1: {"after": 9000, "ids": [512, 513]}}


class TokenStream:
    """Documents from the pre-tokenised shards of this rank."""

    def __init__(self, rank, vocab, seq_len):
        self.g = torch.Generator().manual_seed(100 + rank)
        self.vocab, self.seq_len = vocab, seq_len
        self.extra = SHARD_EXTRA.get(rank)
        self.seen = 0

    def next(self, batch):
        x = torch.randint(2, self.vocab, (batch, self.seq_len + 1), generator=self.g)
        x[:, 0] = SPECIAL["<|bos|>"]
        self.seen += x.numel()
        if self.extra and self.seen > self.extra["after"] * 8:
            x[0, 5:7] = torch.tensor(self.extra["ids"])
        return x[:, :-1], x[:, 1:]
