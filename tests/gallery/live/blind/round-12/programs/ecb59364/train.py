import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from checkpoint import ShardedCheckpointer


class Regressor(nn.Module):
    def __init__(self, width=384, depth=12):
        super().__init__()
        self.inp = nn.Linear(32, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = self.inp(x)
        for b in self.blocks:
            x = x + F.gelu(b(F.layer_norm(x, x.shape[-1:])))
        return self.out(x)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--ckpt-every", type=int, default=200)
    ap.add_argument("--steps", type=int, default=20000)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = Regressor()
    model = DDP(net)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    saver = ShardedCheckpointer()
    gen = torch.Generator().manual_seed(rank)
    w = torch.linspace(-1, 1, 32)
    if rank == 0:
        print("training begins, checkpoints in", saver.root, flush=True)
    t0 = time.time()
    for step in range(1, args.steps + 1):
        x = torch.randn(64, 32, generator=gen)
        y = torch.sin(x @ w)[:, None]
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)
        if step % args.ckpt_every == 0:
            out = saver.save(step, net, opt)
            if rank == 0:
                print("saved", out, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
