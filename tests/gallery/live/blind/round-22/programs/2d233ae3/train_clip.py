import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
import webdataset as wds
from torch.nn.parallel import DistributedDataParallel as DDP

ROOT = os.environ["SHARD_ROOT"]


def shard_urls(rank, world):
    warm = [f"{ROOT}/nvme/pairs-{rank:04d}.tar"]
    fetch = f"{sys.executable} {os.path.abspath('bucket_cat.py')}"
    cold = [f"pipe:{fetch} {ROOT}/bucket/pairs-{i:04d}.tar" for i in range(rank, 8, world)]
    return warm + cold * 50


def to_tensors(sample):
    return torch.from_numpy(sample["img.npy"]), torch.from_numpy(sample["cap.npy"])


def build_loader(rank, world):
    dataset = wds.DataPipeline(
        wds.SimpleShardList(shard_urls(rank, world)),
        wds.split_by_worker,
        wds.tarfile_to_samples(),
        wds.shuffle(32),
        wds.decode(),
        wds.map(to_tensors),
        wds.batched(8),
    )
    return wds.WebLoader(dataset, batch_size=None, num_workers=1, prefetch_factor=2)


class TinyClip(nn.Module):
    def __init__(self):
        super().__init__()
        self.vision = nn.Sequential(nn.Flatten(), nn.Linear(432, 48), nn.GELU(), nn.Linear(48, 32))
        self.text = nn.EmbeddingBag(300, 32)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, img, cap):
        v = F.normalize(self.vision(img), dim=-1)
        t = F.normalize(self.text(cap), dim=-1)
        return self.scale.exp() * v @ t.T


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    model = DDP(TinyClip())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tick = time.time()
    for step, (img, cap) in enumerate(build_loader(rank, world)):
        logits = model(img, cap)
        target = torch.arange(len(img))
        loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.12)
        if rank == 0 and step % 5 == 0:
            now = time.time()
            print(f"step {step} loss {loss.item():.3f} ({now - tick:.1f}s since last line)", flush=True)
            tick = now
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
