import os
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from adapters import AdapterBank
from tasks import TASKS, TaskMixture

DIM = 64
LORA_RANK = 4
EXPORT_EVERY = 60


class Backbone(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.inp = nn.Linear(dim, 2 * dim)
        self.out = nn.Linear(2 * dim, dim)

    def forward(self, x, delta):
        return self.out(torch.nn.functional.silu(self.inp(x))) + delta


def adapter_delta(adapter, x):
    down, up = adapter.down.to_local(), adapter.up.to_local()
    offset = dist.get_rank() * down.shape[0]
    part = x[:, offset : offset + down.shape[0]] @ down
    delta = torch.zeros_like(x)
    delta[:, offset : offset + up.shape[0]] = part @ up.t()
    return delta


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=40))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(21)
    model = DDP(Backbone(DIM))
    bank = AdapterBank(TASKS, DIM, LORA_RANK)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    lora_opt = torch.optim.SGD([p for a in bank.pool.values() for p in a.parameters()], lr=0.05)
    out_dir = tempfile.mkdtemp(prefix="adapters_") if rank == 0 else None
    seen = {t: 0 for t in TASKS}

    for step, (task, x, y) in enumerate(TaskMixture(rank, DIM), start=1):
        pred = model(x, adapter_delta(bank[task], x))
        loss = nn.functional.mse_loss(pred, y)
        opt.zero_grad()
        lora_opt.zero_grad()
        loss.backward()
        opt.step()
        lora_opt.step()
        seen[task] += 1
        time.sleep(0.15)
        if step % 10 == 0:
            avg = loss.detach().clone()
            dist.all_reduce(avg, op=dist.ReduceOp.SUM)
            if rank == 0:
                print(f"step {step} loss {avg.item() / world:.4f} seen {seen}", flush=True)
        if step % EXPORT_EVERY == 0:
            state = bank.export()
            if rank == 0:
                path = os.path.join(out_dir, f"adapters_{step:06d}.pt")
                torch.save(state, path)
                print(f"exported {len(state)} tensors to {path}", flush=True)


if __name__ == "__main__":
    main()
