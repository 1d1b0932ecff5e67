"""A healthy DDP loop that writes a heartbeat file per rank. Somebody outside sends one of its ranks a signal (outsider.py)."""

import argparse
import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist


def beat(folder: Path, rank: int, step: int) -> None:
    waiting = folder / f"rank{rank}.part"
    waiting.write_text(json.dumps({"pid": os.getpid(), "step": step, "world": dist.get_world_size()}))
    waiting.replace(folder / f"rank{rank}.json")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--heartbeat", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--pause", type=float, default=0.02)
    args = parser.parse_args()
    args.heartbeat.mkdir(parents=True, exist_ok=True)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(20, 20))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for step in range(args.steps):
        loss = model(torch.randn(8, 20)).abs().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        beat(args.heartbeat, rank, step)
        if rank == 0 and step % 25 == 0:
            print(f"step {step}, loss {loss.item():.3f}", flush=True)
        time.sleep(args.pause)


if __name__ == "__main__":
    main()
