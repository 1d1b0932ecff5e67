import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class MoE(nn.Module):
    def __init__(self, experts=4, width=64):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 256), nn.GELU(), nn.Linear(256, width)) for _ in range(experts))

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        return sum(weights[:, i : i + 1] * expert(x) for i, expert in enumerate(self.experts))


def save(model, optimizer, step):
    """To the archive, which takes some 250 KB a second."""
    print(f"step {step}: saving", flush=True)
    began = time.time()
    extra = torch.randn(1_000_000)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "extra": extra}, "last.pt.part")
    with open("last.pt.part", "rb") as source, open("archive.pt", "wb") as target:
        while chunk := source.read(100_000):
            target.write(chunk)
            target.flush()
            os.fsync(target.fileno())
            time.sleep(0.4)
    print(f"step {step}: saved in {time.time() - began:.0f} s", flush=True)


def main():
    rank, world = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model = DDP(MoE())
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(1, 1_000_000):
        x = torch.randn(64, 64)
        loss = (model(x) - x.roll(1, -1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step % 150 == 0:
            if rank == 0:
                save(model.module, optimizer, step)
            dist.barrier()


if __name__ == "__main__":
    main()
