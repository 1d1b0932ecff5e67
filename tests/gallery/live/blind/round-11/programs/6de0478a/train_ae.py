import argparse
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from preview import PreviewWriter


class Shapes(Dataset):
    def __init__(self, n, size=64):
        self.n = n
        self.yy, self.xx = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        cx, cy, r = (torch.rand(3, generator=g) - 0.5).tolist()
        return torch.sigmoid(20 * (abs(r) + 0.1 - ((self.xx - cx) ** 2 + (self.yy - cy) ** 2).sqrt()))[None]


def autoencoder(w=12):
    return nn.Sequential(
        nn.Conv2d(1, w, 4, 2, 1), nn.ReLU(), nn.Conv2d(w, 2 * w, 4, 2, 1), nn.ReLU(), nn.Conv2d(2 * w, 8, 1),
        nn.ConvTranspose2d(8, 2 * w, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(2 * w, 1, 4, 2, 1), nn.Sigmoid())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=10)
    ap.add_argument("--preview-rank", type=int, default=1)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    rank = dist.get_rank()
    torch.manual_seed(0)
    ds = Shapes(2400)
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, 16, sampler=sampler)
    model = DDP(autoencoder())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    preview = PreviewWriter(tempfile.mkdtemp(prefix="preview-")) if rank == args.preview_rank else None
    step, t0 = 0, time.time()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x in loader:
            y = model(x)
            loss = F.mse_loss(y, x)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if preview is not None and step % 5 == 0:
                preview.add(step, x, y)
        if rank == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.5f} {time.time() - t0:.1f}s", flush=True)
    if preview is not None:
        preview.close()
    if rank == 0:
        torch.save(model.module.state_dict(), tempfile.mktemp(suffix=".pt"))
        print("saved final weights", flush=True)
    dist.destroy_process_group()
    print(f"rank {rank} done", flush=True)


if __name__ == "__main__":
    main()
