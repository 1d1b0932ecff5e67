import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from streaming import RemoteRows

torch.set_num_threads(1)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 12)))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, x in enumerate(DataLoader(RemoteRows(rank, world), batch_size=8, num_workers=2, prefetch_factor=2)):
        loss = (model(x) - x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.1)
        if step % 10 == 0:
            print(f"{time.strftime('%X')} rank {rank} step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
