import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn

from interruption import InterruptionWatcher

SCRATCH = os.environ["JOB_SCRATCH"]
INNER_STEPS = 12


class OuterLoop:
    """Local SGD: workers drift apart for INNER_STEPS, then parameters are averaged."""

    def __init__(self, model, store, rank, world):
        self.model, self.store = model, store
        self.rank, self.world = rank, world
        self.round = 0

    def rendezvous(self):
        self.store.set(f"outer/{self.round}/{self.rank}", str(time.time()))
        self.store.wait([f"outer/{self.round}/{r}" for r in range(self.world)], timedelta(hours=1))

    def average(self):
        self.rendezvous()
        flat = nn.utils.parameters_to_vector(self.model.parameters()).detach()
        dist.all_reduce(flat)
        nn.utils.vector_to_parameters(flat / self.world, self.model.parameters())
        self.round += 1


def save(model, optim, step, rank):
    path = os.path.join(SCRATCH, f"worker{rank}.pt")
    torch.save({"model": model.state_dict(), "optim": optim.state_dict(), "step": step}, path + ".part")
    os.replace(path + ".part", path)
    return path


def train(rank, world):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 8))
    optim = torch.optim.AdamW(model.parameters(), lr=2e-3)
    gen = torch.Generator().manual_seed(rank)
    store = dist.PrefixStore("local_sgd", dist.distributed_c10d._get_default_store())
    outer = OuterLoop(model, store, rank, world)
    watcher = InterruptionWatcher(SCRATCH, host=rank)
    watcher.start()

    step = 0
    while step < 200_000:
        if watcher.requested.is_set():
            print(f"[worker {rank}] host is being taken back, saved {save(model, optim, step, rank)}", flush=True)
            return
        x = torch.randn(64, 32, generator=gen)
        y = (x[:, :8].abs().argmax(-1) + rank) % 8
        loss = nn.functional.cross_entropy(model(x), y)
        optim.zero_grad()
        loss.backward()
        optim.step()
        time.sleep(0.1)
        step += 1
        if step % INNER_STEPS == 0:
            outer.average()
            if rank == 0:
                print(f"[worker 0] step {step} round {outer.round} loss {loss.item():.4f}", flush=True)
        if step % 100 == 0:
            save(model, optim, step, rank)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    train(dist.get_rank(), dist.get_world_size())


if __name__ == "__main__":
    main()
