import argparse
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from model_base import ModelBenchmark


class MLP(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class TensorParallelMLP(ModelBenchmark):
    dim, hidden, rows = 64, 128, 16

    def build(self):
        torch.manual_seed(0)
        self.model = MLP(self.dim, self.hidden)
        parallelize_module(self.model, self.mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.01, foreach=False)
        self.gen = torch.Generator().manual_seed(self.mesh.get_local_rank("dp"))

    def batch(self):
        return torch.randn(self.rows, self.dim, generator=self.gen)

    def loss(self, x):
        return F.mse_loss(self.model(x), x.roll(1, 1))


class LongTensorParallelMLP(TensorParallelMLP):
    hidden, rows = 256, 24


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--duration", type=float, default=20)
    ap.add_argument("--warmup", type=int, default=10)
    args = ap.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    for kind in (TensorParallelMLP, LongTensorParallelMLP):
        bench = kind(kind.__name__, args.duration, args.warmup)
        bench.preprocess()
        for row in bench.benchmark():
            if bench.rank == 0:
                print(f"{bench.name} rank {row['rank']}: {row['steps']} steps, {row['mean_ms']:.1f} ms", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
