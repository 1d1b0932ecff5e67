import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from pipe_source import PipeSource


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 12))
        self.dec = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 64))

    def forward(self, x):
        return self.dec(self.enc(x))


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(AutoEncoder())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    source = PipeSource(rank, records=800)
    step = 0
    for epoch in range(2000):
        for x in source.epoch(epoch, batch=8):
            loss = F.mse_loss(model(x), x)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.14)
            step += 1
            if rank == 0 and step % 10 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
    source.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
