import copy
import multiprocessing as mp
import os
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from systems import train_frames
from validation import FullValidator

WORLD = 3


def fitting_net():
    return nn.Sequential(nn.Linear(30, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))


def fit(rank, workdir):
    torch.set_num_threads(1)
    store = dist.FileStore(os.path.join(workdir, "rendezvous"), WORLD)
    store.set_timeout(timedelta(hours=2))
    dist.init_process_group("gloo", store=store, rank=rank, world_size=WORLD, timeout=timedelta(hours=1))
    torch.manual_seed(3)
    model = DDP(fitting_net())
    optim = torch.optim.Adam(model.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.ExponentialLR(optim, 0.9995)
    validator = FullValidator(store, rank, every=60, log_path=os.path.join(workdir, "full_val.jsonl"))
    gen = torch.Generator().manual_seed(rank)
    best_state = None
    for step in range(1, 400001):
        coords, energy = train_frames(gen)
        out = model(coords)
        loss = (out[:, :1] - energy).pow(2).mean() + 1e-4 * out[:, 1:].pow(2).mean()
        optim.zero_grad()
        loss.backward()
        optim.step()
        sched.step()
        time.sleep(0.12)
        if rank == 0 and step % 20 == 0:
            print(f"batch {step} rmse_e {loss.item() ** 0.5:.4f} lr {sched.get_last_lr()[0]:.2e}", flush=True)
        if validator.due(step) and validator.run(step, model.module):
            best_state = copy.deepcopy(model.module.state_dict())
    dist.destroy_process_group()
    return best_state


def main():
    workdir = tempfile.mkdtemp(prefix="fit_")
    ctx = mp.get_context("spawn")
    workers = [ctx.Process(target=fit, args=(rank, workdir), name=f"fit-{rank}") for rank in range(WORLD)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()


if __name__ == "__main__":
    main()
