import argparse
import random
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from scoring import wer

VOCAB = "the a of to and in that it was his he with as for had you not on at by".split()


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(20, 48, batch_first=True)
        self.out = nn.Linear(48, len(VOCAB))

    def forward(self, x):
        return self.out(self.rnn(x)[0])


def dev_subset(epoch):
    # short dev list while the model warms up, the whole dev set afterwards
    n = 60 if epoch < 4 else 1200
    rnd = random.Random(17)
    return {f"dev-{i:05d}": " ".join(rnd.choices(VOCAB, k=rnd.randint(5, 14))) for i in range(n)}


def decode(refs, epoch):
    rnd = random.Random(epoch)
    out = {}
    for utt, text in refs.items():
        out[utt] = " ".join(w if rnd.random() > 0.3 else rnd.choice(VOCAB) for w in text.split())
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--exp", default="exp")
    p.add_argument("--max_epoch", type=int, default=10)
    p.add_argument("--iters", type=int, default=40)
    a = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DDP(Decoder())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, a.max_epoch + 1):
        for _ in range(a.iters):
            x = torch.randn(6, 30, 20)
            y = torch.randint(0, len(VOCAB), (6, 30))
            loss = nn.functional.cross_entropy(model(x).transpose(1, 2), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.05)
        if rank == 0:
            print(f"{epoch}epoch: train loss={loss.item():.3f}, start scoring", flush=True)
            refs = dev_subset(epoch)
            score = wer(refs, decode(refs, epoch), f"{a.exp}/score_{epoch}")
            print(f"{epoch}epoch: valid wer={score:.2f} ({len(refs)} utts)", flush=True)


if __name__ == "__main__":
    main()
