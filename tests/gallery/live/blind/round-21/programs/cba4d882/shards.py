import time

import torch


class TokenShard:
    """Token ids of one rank's share of the corpus, packed into fixed windows."""

    def __init__(self, rank, window=33):
        gen = torch.Generator().manual_seed(40 + rank)
        self.docs = []
        for _ in range(18 + 22 * rank):
            n = int(torch.randint(200, 600, (1,), generator=gen))
            self.docs.append(torch.randint(0, 128, (n,), generator=gen))
            time.sleep(0.03)
        stream = torch.cat(self.docs)
        self.windows = stream[: len(stream) // window * window].view(-1, window)
        self.gen = gen

    def sample(self, batch):
        pick = torch.randint(0, len(self.windows), (batch,), generator=self.gen)
        return self.windows[pick]
