import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from metrics import HostMonitor, full_volume_psnr
from model import Denoiser


class NoisySlices(Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        clean = torch.rand(1, 48, 48, generator=g)
        time.sleep(0.02)
        return clean + 0.1 * torch.randn(clean.shape, generator=g), clean


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=60)
    ap.add_argument("--val-every", type=int, default=3)
    ap.add_argument("--save-dir", default="out")
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    os.makedirs(args.save_dir, exist_ok=True)
    torch.manual_seed(0)
    net = DDP(Denoiser())
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    ds = NoisySlices()
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, 8, sampler=sampler, num_workers=2, persistent_workers=True)
    if rank == 0:
        HostMonitor().start()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for i, (x, y) in enumerate(loader):
            loss = F.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.1)
            if rank == 0 and i % 4 == 0:
                print(f"epoch {epoch} it {i} loss {loss.item():.5f}", flush=True)
        if epoch % args.val_every == args.val_every - 1:
            if rank == 0:
                psnr = full_volume_psnr(net.module)
                torch.save({"model": net.module.state_dict(), "opt": opt.state_dict()},
                           os.path.join(args.save_dir, "last.pt"))
                print(f"epoch {epoch} psnr {psnr:.2f}", flush=True)
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
