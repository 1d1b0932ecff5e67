import gc
import os
import signal
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from ckpt import RollingCheckpoint

VOCAB = 128


class Block(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)
        self.up = torch.nn.Linear(dim, 2 * dim)
        self.down = torch.nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Lm(torch.nn.Module):
    def __init__(self, dim=32, depth=3):
        super().__init__()
        self.emb = torch.nn.Embedding(VOCAB, dim)
        self.blocks = torch.nn.ModuleList(Block(dim) for _ in range(depth))
        self.head = torch.nn.Linear(dim, VOCAB)

    def forward(self, ids):
        x = self.emb(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Stop:
    def __init__(self):
        self.asked = False
        self.ticks = 0
        signal.signal(signal.SIGUSR2, self._ask)
        signal.signal(signal.SIGALRM, self._tick)
        signal.setitimer(signal.ITIMER_REAL, 5, 5)

    def _ask(self, signum, frame):
        self.asked = True

    def _tick(self, signum, frame):
        self.ticks += 1

    def agreed(self):
        flag = torch.tensor([float(self.asked)])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return flag.item() > 0


def batch(gen, rows=8):
    start = torch.randint(VOCAB, (rows, 1), generator=gen)
    ids = (start + torch.arange(17)) % VOCAB
    return ids[:, :-1], ids[:, 1:]


def loss_of(model, ids, labels):
    return torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), labels.flatten())


@torch.no_grad()
def evaluate(model, rounds=20):
    gen = torch.Generator().manual_seed(99)
    total = torch.zeros(1)
    for _ in range(rounds):
        total += loss_of(model, *batch(gen, 16))
        time.sleep(0.3)
    dist.all_reduce(total)
    return total.item() / rounds / dist.get_world_size()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(minutes=20))
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(2)
    model = Lm()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    checkpoints = RollingCheckpoint(every=50)
    stop = Stop()
    gen = torch.Generator().manual_seed(rank)
    gc.disable()

    for step in range(1, 1000000):
        time.sleep(0.12 + 0.06 * ((step + rank) % 2))
        loss = loss_of(model, *batch(gen))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        checkpoints.maybe_save(step, model, optimizer)
        if step % 10 == 0:
            if rank == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if stop.agreed():
                break
        if step % 100 == 0:
            gc.collect(1)
            value = evaluate(model)
            if rank == 0:
                print(f"step {step} eval {value:.4f} pid {os.getpid()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
