import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from grad_report import GradReport


class MaskedAutoencoder(nn.Module):
    def __init__(self, dim=192, hidden=320):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU())
        self.decoder = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, dim))

    def forward(self, patches, mask):
        return self.decoder(self.encoder(patches * mask))


def is_last_rank():
    return dist.get_rank() == dist.get_world_size() - 1


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank = dist.get_rank()
    torch.manual_seed(42)
    net = MaskedAutoencoder()
    model = DDP(net, bucket_cap_mb=1)
    report = GradReport(net) if is_last_rank() else None
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3)
    gen = torch.Generator().manual_seed(100 + rank)
    basis = torch.randn(16, 192, generator=torch.Generator().manual_seed(9))
    window = time.time()
    for step in range(1, 1_000_000):
        patches = torch.randn(16, 16, generator=gen) @ basis
        mask = (torch.rand(patches.shape, generator=gen) > 0.5).float()
        loss = ((model(patches, mask) - patches) ** 2).mean()
        optim.zero_grad()
        loss.backward()
        optim.step()
        time.sleep(0.06)
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.3f} {(time.time() - window) / 10:.2f} s/it", flush=True)
            window = time.time()
    if report is not None:
        print(report.root)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
