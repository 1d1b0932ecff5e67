import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class PhonemeNet(nn.Module):
    def __init__(self, feats=40, hidden=48, phones=20):
        super().__init__()
        self.rnn = nn.GRU(feats, hidden, batch_first=True)
        self.out = nn.Linear(hidden, phones)

    def forward(self, x):
        return self.out(self.rnn(x)[0])


class G2PBrain:
    def __init__(self, lr, seed=0):
        torch.manual_seed(seed)
        self.rank = dist.get_rank()
        self.model = DDP(PhonemeNet())
        self.opt = torch.optim.SGD(self.model.parameters(), lr)
        self.gen = torch.Generator().manual_seed(100 + self.rank)

    def batch(self):
        x = torch.randn(8, 12, 40, generator=self.gen)
        return x, torch.randint(0, 20, (8, 12), generator=self.gen)

    def loss(self, net, x, y):
        return nn.functional.cross_entropy(net(x).flatten(0, 1), y.flatten())

    def fit(self, counter, steps):
        for epoch in counter:
            for _ in range(steps):
                x, y = self.batch()
                self.opt.zero_grad()
                loss = self.loss(self.model, x, y)
                loss.backward()
                self.opt.step()
                time.sleep(0.15)
            print(f"[{self.rank}] epoch {epoch} train loss {loss.item():.3f}", flush=True)
            if self.rank == 0:
                self.on_valid_end(epoch, counter)

    def on_valid_end(self, epoch, counter):
        with torch.no_grad():
            valid = sum(self.loss(self.model.module, *self.batch()).item() for _ in range(4)) / 4
        print(f"epoch {epoch} valid loss {valid:.3f}", flush=True)
        counter.update_metric(valid)

    def evaluate(self):
        dist.barrier()
        with torch.no_grad():
            t = self.loss(self.model.module, *self.batch())
        dist.all_reduce(t)
        return t.item() / dist.get_world_size()
