import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from writebuffer import WriteBuffer

torch.set_num_threads(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=1000)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(*[nn.Sequential(nn.Linear(48, 48), nn.ReLU()) for _ in range(6)]))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    out = WriteBuffer("metrics.jsonl") if rank == 0 else None
    for step in range(args.steps):
        x = torch.randn(8, 48)
        loss = (model(x) - x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if out is not None:
            for name, p_ in model.module.named_parameters():
                out.append({"step": step, "name": name, "norm": p_.norm().item(), "grad": p_.grad.norm().item()})
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
