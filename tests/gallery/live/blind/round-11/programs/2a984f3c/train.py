import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

from config import Config
from schedule import GPipe
from stages import build_stage


def make_data(cfg):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(cfg.samples, cfg.features, generator=g)
    w = torch.randn(cfg.features, cfg.classes, generator=g)
    return TensorDataset(x, (x @ w).argmax(1))


def main():
    cfg = Config()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    stage = build_stage(rank, world, cfg)
    opt = torch.optim.Adam(stage.parameters(), lr=cfg.lr)
    pipe = GPipe(stage, rank, world, cfg)
    loader = DataLoader(make_data(cfg), cfg.batch_size, shuffle=True, generator=torch.Generator().manual_seed(5))
    t0, step = time.time(), 0
    for epoch in range(cfg.epochs):
        for x, y in loader:
            loss = pipe.step(x if rank == 0 else None, y if rank == world - 1 else None)
            opt.step()
            opt.zero_grad()
            step += 1
            if rank == world - 1 and step % cfg.log_every == 0:
                print(f"epoch {epoch} step {step} loss {loss:.4f} {step / (time.time() - t0):.1f} it/s", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
