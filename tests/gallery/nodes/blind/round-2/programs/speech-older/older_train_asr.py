import argparse
import os
import time

import torch
import torch.distributed as dist
from model import Recogniser
from torch.nn.parallel import DistributedDataParallel as DDP


def setup() -> tuple[int, int]:
    rank, world = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    dist.init_process_group("gloo", rank=rank, world_size=world)
    return rank, world


def reduce_mean(value: torch.Tensor) -> torch.Tensor:
    value = value.detach().clone()
    dist.all_reduce(value)
    return value / dist.get_world_size()


def train_epoch(model, optimizer, loss_of, epoch, rank):
    total = torch.zeros(())
    for _ in range(20):
        audio, target = torch.randn(4, 50, 40), torch.randint(1, 32, (4, 12))
        out = model(audio).transpose(0, 1)
        loss = loss_of(out, target, torch.full((4,), 50), torch.full((4,), 12))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
        time.sleep(0.02)
    dist.barrier()  # so that the lines of the log stay in order
    mean = reduce_mean(total / 20)
    if rank == 0:
        print(f"epoch {epoch} loss {mean.item():.3f}", flush=True)


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--epochs", type=int, default=10)
    asked = words.parse_args()
    rank, _ = setup()
    model = DDP(Recogniser())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_of = torch.nn.CTCLoss()
    for epoch in range(asked.epochs):
        train_epoch(model, optimizer, loss_of, epoch, rank)


if __name__ == "__main__":
    main()
