import argparse
import time

import torch
import torch.distributed as dist
from torch import nn

torch.set_num_threads(1)


class Tower(nn.Module):
    def __init__(self, d_in):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_in, 64), nn.GELU(), nn.Linear(64, 32))

    def forward(self, x):
        return nn.functional.normalize(self.net(x), dim=-1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=1000)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    image, text = Tower(48), Tower(24)
    params = [*image.parameters(), *text.parameters()]
    opt = torch.optim.AdamW(params, lr=1e-3)
    g = torch.Generator().manual_seed(rank)
    for step in range(args.steps):
        a, b = image(torch.randn(16, 48, generator=g)), text(torch.randn(16, 24, generator=g))
        gathered = [torch.empty_like(b) for _ in range(world)]
        dist.all_gather(gathered, b.detach())
        gathered[rank] = b
        logits = a @ torch.cat(gathered).T / 0.07
        loss = nn.functional.cross_entropy(logits, torch.arange(16) + 16 * rank)
        opt.zero_grad()
        loss.backward()
        for q in params:
            dist.all_reduce(q.grad)
            q.grad /= world
        opt.step()
        time.sleep(0.1)
        if step % 20 == 0:
            print(f"rank {rank} step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
