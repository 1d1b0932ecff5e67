import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from .services import Services


def main():
    torch.set_num_threads(1)
    services = Services(int(os.environ["RANK"]))
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    control = dist.new_group([0, 1])
    model = DDP(nn.Sequential(nn.Linear(50, 80), nn.Mish(), nn.Linear(80, 5)))
    opt = torch.optim.RMSprop(model.parameters(), lr=1e-4)
    for step in range(1, 200000):
        x = torch.randn(8, 50)
        loss = nn.functional.cross_entropy(model(x), x.argmax(1) % 5)
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.35)
        if step % 10 == 0:
            if rank == 0:
                services.export(f"run/status_{rank}.txt", f"{step} {loss.item()}")
                services.uploads.put(f"status_{step}")
                print(f"step={step} loss={loss.item():.4f}", flush=True)
            flag = torch.zeros(1)
            dist.broadcast(flag, 0, group=control)


if __name__ == "__main__":
    main()
