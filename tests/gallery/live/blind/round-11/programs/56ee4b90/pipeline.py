import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from one_f_one_b import OneFOneB

FEAT, DIM, CLASSES, MICRO, BATCH, SAMPLES = 128, 128, 128, 32, 256, 7400


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n, self.a, self.b = nn.LayerNorm(DIM), nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(self.n(x))))


def epoch_batches(x, y, epoch):
    perm = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
    for idx in perm.split(BATCH):
        yield x[idx].split(MICRO), y[idx].split(MICRO)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank, world = dist.get_rank(), dist.get_world_size()
    g = torch.Generator().manual_seed(0)
    x = torch.randn(SAMPLES, FEAT, generator=g)
    y = (x @ torch.randn(FEAT, CLASSES, generator=g)).argmax(1)
    torch.manual_seed(rank)
    stage = nn.Sequential(*[Layer() for _ in range(3)])
    if rank == world - 1:
        stage.append(nn.Linear(DIM, CLASSES))
    opt = torch.optim.AdamW(stage.parameters(), lr=5e-4)
    pipe = OneFOneB(stage, rank, world, DIM)
    t0, step, epoch = time.time(), 0, 0
    while True:
        for mx, my in epoch_batches(x, y, epoch):
            loss = pipe.train_step(mx, my)
            opt.step()
            opt.zero_grad()
            step += 1
            if rank == world - 1 and step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {loss:.4f} {step / (time.time() - t0):.2f} it/s", flush=True)
        correct = pipe.evaluate(x[:2048].split(MICRO), y[:2048].split(MICRO))
        stats = torch.tensor([float(correct), float(time.time() - t0 > 1500) if rank == 0 else 0.0])
        dist.all_reduce(stats)
        if rank == 0:
            print(f"epoch {epoch} train acc {stats[0].item() / 2048:.4f}", flush=True)
        if stats[1] > 0:
            break
        epoch += 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
