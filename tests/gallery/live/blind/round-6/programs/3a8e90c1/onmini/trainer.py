import time

import torch
import torch.distributed as dist
from torch import nn


class Coder(nn.Module):
    def __init__(self, vocab=300, d=64):
        super().__init__()
        self.e = nn.Embedding(vocab, d)
        self.g = nn.GRU(d, d, bidirectional=True, batch_first=True)
        self.o = nn.Linear(2 * d, vocab)

    def forward(self, x):
        return self.o(self.g(self.e(x))[0])


def average_gradients(model, world):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= world


class Trainer:
    def __init__(self, opt, rank, batches):
        self.opt, self.rank, self.batches = opt, rank, iter(batches)
        torch.manual_seed(opt.seed)
        self.model = Coder()
        self.optim = torch.optim.Adam(self.model.parameters(), 1e-3)

    def _accum(self, step):
        return self.opt.accum_count[1] if step >= self.opt.accum_steps else self.opt.accum_count[0]

    def validate(self, step):
        with torch.no_grad():
            for _ in range(25):
                x = torch.randint(2, 300, (32, 20))
                self.model(x)
        if self.rank == 0:
            print(f"[valid] step {step} done", flush=True)

    def train(self):
        t0 = time.time()
        for step in range(1, self.opt.train_steps + 1):
            self.optim.zero_grad()
            for _ in range(self._accum(step)):
                b = next(self.batches)
                x, y = torch.tensor(b["src"]), torch.tensor(b["tgt"])
                loss = nn.functional.cross_entropy(self.model(x).flatten(0, 1), y.flatten())
                loss.backward()
            average_gradients(self.model, self.opt.world_size)
            self.optim.step()
            time.sleep(0.05)
            if self.rank == 0 and step % self.opt.report_every == 0:
                print(f"Step {step}/{self.opt.train_steps}; xent {loss.item():.3f}; {time.time()-t0:.0f} sec", flush=True)
            if self.rank == 0 and step % self.opt.valid_steps == 0:
                self.validate(step)
