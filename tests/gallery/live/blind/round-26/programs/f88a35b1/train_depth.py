import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from frames import StereoFrames


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    data = StereoFrames()
    sampler = DistributedSampler(data, shuffle=False)
    loader = DataLoader(data, batch_size=4, sampler=sampler, num_workers=1)
    model = DDP(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1)))
    optim = torch.optim.Adam(model.parameters(), lr=1e-3)
    began = time.time()
    for step, (left, right) in enumerate(loader):
        loss = (model(left) - right).abs().mean()
        optim.zero_grad()
        loss.backward()
        optim.step()
        time.sleep(0.15)
        if rank == 0 and step % 5 == 0:
            print(f"step {step} loss {loss.item():.4f} time {time.time() - began:.1f}s", flush=True)


if __name__ == "__main__":
    main()
