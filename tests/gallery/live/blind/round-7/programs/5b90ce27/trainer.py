import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class SpanTagger(nn.Module):
    def __init__(self, dim=24, tags=4):
        super().__init__()
        self.enc = nn.LSTM(16, dim, batch_first=True, bidirectional=True)
        self.tag = nn.Linear(2 * dim, tags)

    def forward(self, x):
        return self.tag(self.enc(x)[0])


class Trainer:
    def __init__(self, train, valid, callbacks, lr=3e-3):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(0)
        self.model = DDP(SpanTagger())
        self.opt = torch.optim.AdamW(self.model.parameters(), lr)
        self.train_set = train[self.rank::self.world]
        self.valid_set = valid[self.rank::self.world]
        self.callbacks = callbacks
        self.control = {"should_training_stop": False}

    def evaluate(self):
        loss, spans = torch.zeros(1), []
        with torch.no_grad():
            for x, y in self.valid_set:
                out = self.model.module(x[None])[0]
                loss += nn.functional.cross_entropy(out, y)
                spans.append((out.argmax(-1), y))
        dist.all_reduce(loss)
        hit = sum(int(((p == y) & (y > 0)).sum()) for p, y in spans)
        tot = sum(int((p > 0).sum() + (y > 0).sum()) for p, y in spans)
        return {"eval_loss": loss.item() / self.world, "eval_f1": 2 * hit / max(tot, 1)}

    def train(self, epochs):
        for epoch in range(epochs):
            for x, y in self.train_set:
                loss = nn.functional.cross_entropy(self.model(x[None])[0], y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                time.sleep(0.03)
            metrics = self.evaluate()
            print(f"[{self.rank}] epoch {epoch} {metrics}", flush=True)
            for cb in self.callbacks:
                cb.on_evaluate(metrics, self.control)
            if self.control["should_training_stop"]:
                break
        dist.barrier()
        if self.rank == 0:
            torch.save(self.model.module.state_dict(), "best.pt")
