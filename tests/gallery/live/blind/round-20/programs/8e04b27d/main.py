import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from comm import broadcast_pyobj
from feed import SampleFeed

DIM = 256


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(DIM, 4 * DIM)
        self.down = nn.Linear(4 * DIM, DIM)
        self.head = nn.Linear(DIM, 1)

    def forward(self, x):
        return self.head(x + self.down(F.gelu(self.up(x))))


class Trainer:
    def __init__(self, tp):
        world = dist.get_world_size()
        self.mesh = init_device_mesh("cpu", (world // tp, tp), mesh_dim_names=("dp", "tp"))
        self.tp_group = self.mesh["tp"].get_group()
        self.dp_group = self.mesh["dp"].get_group()
        self.tp_rank = self.mesh["tp"].get_local_rank()
        self.dp_rank = self.mesh["dp"].get_local_rank()
        self.leader = dist.get_global_rank(self.tp_group, 0)
        torch.manual_seed(0)
        self.model = parallelize_module(Scorer(), self.mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.feed = SampleFeed(100 + self.dp_rank, 64, DIM) if self.tp_rank == 0 else None

    def next_online(self):
        while True:
            items = self.feed.poll() if self.feed is not None else []
            items = broadcast_pyobj(items, self.tp_rank, self.tp_group, src=self.leader)
            if items:
                return torch.cat([i["x"] for i in items]), torch.cat([i["score"] for i in items])
            time.sleep(0.02)

    def update(self, x, y):
        self.opt.zero_grad()
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        for p in self.model.parameters():
            g = p.grad.to_local() if isinstance(p.grad, DTensor) else p.grad
            dist.all_reduce(g, group=self.dp_group)
            g.div_(self.mesh["dp"].size())
        self.opt.step()
        return loss.item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tp", type=int, default=2)
    p.add_argument("--offline-steps", type=int, default=120)
    p.add_argument("--steps", type=int, default=50000)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    t = Trainer(args.tp)
    gen = torch.Generator().manual_seed(t.dp_rank)
    for step in range(args.offline_steps):
        x = torch.randn(128, DIM, generator=gen)
        loss = t.update(x, x.mean(dim=1, keepdim=True))
        if step % 20 == 0 and dist.get_rank() == 0:
            print(f"offline step {step} loss {loss:.5f}", flush=True)
    if dist.get_rank() == 0:
        print("switching to online samples", flush=True)
    for step in range(args.steps):
        x, y = t.next_online()
        loss = t.update(x, y)
        if step % 20 == 0 and dist.get_rank() == 0:
            print(f"online step {step} batch {x.shape[0]} loss {loss:.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
