import json
import time

import torch
from torch.distributed.tensor import DTensor


class Metrics:
    def __init__(self, rank, every, after):
        self.main = rank == 0
        self.every, self.after = every, after
        self.mark = time.time()

    def line(self, step, **values):
        if self.main:
            now = time.time()
            print(json.dumps({"step": step, "seconds": round(now - self.mark, 2), **values}), flush=True)
            self.mark = now

    def weight_stats(self, step, model):
        if not self.main or step < self.after or step % self.every:
            return
        stats = {}
        for name, p in model.named_parameters():
            if isinstance(p, DTensor):
                p = p.full_tensor()
            stats[name] = [round(p.mean().item(), 6), round(p.std().item(), 6), round(p.abs().max().item(), 6)]
        print(json.dumps({"step": step, "weights": stats}), flush=True)
