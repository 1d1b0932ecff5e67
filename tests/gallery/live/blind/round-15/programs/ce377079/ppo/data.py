import torch

from .model import BOS, VOCAB

DOMAINS = ("chat", "code", "math")


class PromptStream:
    def __init__(self, rank, batch_size, prompt_len, seed):
        self.domain = DOMAINS[rank % len(DOMAINS)]
        self.tag = 2 + rank % len(DOMAINS)
        self.batch_size = batch_size
        self.prompt_len = prompt_len
        self.gen = torch.Generator().manual_seed(seed + rank)

    def next(self):
        body = torch.randint(8, VOCAB, (self.batch_size, self.prompt_len - 2), generator=self.gen)
        head = torch.tensor([BOS, self.tag]).expand(self.batch_size, 2)
        return torch.cat([head, body], 1)


def reward_fn(domain, responses):
    if domain == "chat":
        return (responses % 2 == 0).float().mean(1)
    if domain == "code":
        return 6.0 * ((responses >= 64).float().mean(1) - 0.25)
    return (responses < 40).float().mean(1)
