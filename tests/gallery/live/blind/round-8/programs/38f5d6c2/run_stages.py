import os
import threading
import time

import torch
import torch.distributed as dist
from torch import nn

from store_db import Journal

DIM, BATCH, MICROS = 128, 16, 3
WIDTHS = [1, 2, 4, 2]


def mlp(depth):
    return nn.Sequential(*[m for _ in range(depth) for m in (nn.Linear(DIM, DIM), nn.GELU())])


class Writer:
    """Saves a stage without holding up the schedule."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.folder, self.thread = folder, None

    def save(self, rank, step, state):
        if self.thread is not None:
            self.thread.join()
        state = {k: v.clone() for k, v in state.items()}
        self.thread = threading.Thread(target=self._write, args=(rank, step, state))
        self.thread.start()

    def _write(self, rank, step, state):
        with open(f"{self.folder}/stage{rank}.pt", "wb") as f:
            torch.save({"step": step, "state": state}, f)
            f.flush()
            os.fsync(f.fileno())


def validate(stage, head, seconds):
    end, total, n = time.time() + seconds, 0.0, 0
    gen = torch.Generator().manual_seed(1)
    with torch.no_grad():
        while time.time() < end:
            total += head(stage(torch.randn(256, DIM, generator=gen))).pow(2).mean().item()
            n += 1
    return total / n


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    first, last = rank == 0, rank == size - 1
    torch.manual_seed(rank)
    stage, head = mlp(WIDTHS[rank]), nn.Linear(DIM, 1)
    params = list(stage.parameters()) + (list(head.parameters()) if last else [])
    opt = torch.optim.AdamW(params, lr=1e-3)
    journal, writer = Journal(f"run{rank}.db"), Writer("stages")
    t0 = time.time()
    for step in range(1, 200001):
        acts, sends, total = [], [], 0.0
        for m in range(MICROS):
            if first:
                x = torch.randn(BATCH, DIM)
            else:
                x = torch.empty(BATCH, DIM)
                dist.recv(x, src=rank - 1)
                x.requires_grad_()
            y = stage(x)
            acts.append((x, y))
            if not last:
                sends.append(dist.isend(y.detach(), dst=rank + 1))
        for w in sends:
            w.wait()
        sends = []
        for x, y in acts:
            if last:
                loss = (head(y) - torch.randn(BATCH, 1)).pow(2).mean() / MICROS
                loss.backward()
                total += loss.item()
            else:
                g = torch.empty_like(y)
                dist.recv(g, src=rank + 1)
                y.backward(g)
            if not first:
                sends.append(dist.isend(x.grad, dst=rank - 1))
        for w in sends:
            w.wait()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if last:
            journal.add("loss", step, total)
            if step % 200 == 0:
                print(f"step {step} loss {total:.5f} {step / (time.time() - t0):.1f} it/s", flush=True)
        if step % 500 == 0:
            writer.save(rank, step, stage.state_dict())
        if step % 1500 == 0 and last:
            print(f"step {step} validation {validate(stage, head, 11):.5f}", flush=True)


if __name__ == "__main__":
    main()
