import argparse
import time

import torch
import torch.distributed as dist
from torch import nn

from tracking import RestStore, Run


class Tabular(nn.Module):
    def __init__(self, d=40):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 1))

    def forward(self, x):
        return self.net(x)[:, 0]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tracking-port", type=int, required=True)
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--steps", type=int, default=25)
    a = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    run = Run(RestStore("127.0.0.1", a.tracking_port)) if rank == 0 else None
    torch.manual_seed(rank)
    model = nn.parallel.DistributedDataParallel(Tabular())
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    step = 0
    for e in range(a.epochs):
        total = 0.0
        for _ in range(a.steps):
            x = torch.randn(64, 40)
            loss = (model(x) - x[:, :3].prod(1)).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            total += loss.item()
            time.sleep(0.08)
            if run is not None:
                run.log(step, loss=loss.item())
        if run is not None:
            run.log(step, flush=True, epoch_loss=total / a.steps, epoch=e)
            print(f"epoch {e} loss {total / a.steps:.4f}", flush=True)


if __name__ == "__main__":
    main()
