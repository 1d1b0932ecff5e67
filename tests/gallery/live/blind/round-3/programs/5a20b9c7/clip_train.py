import argparse
import logging
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from url_dataset import UrlImages, build_url_list

logging.basicConfig(level=logging.INFO, format="%(asctime)s | INFO | %(message)s", datefmt="%Y-%m-%d,%H:%M:%S")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--urls", type=int, default=1000)
    p.add_argument("--workers", type=int, default=2)
    a = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    ds = UrlImages(build_url_list(a.urls))
    sampler = DistributedSampler(ds, shuffle=False)
    loader = DataLoader(ds, batch_size=4, num_workers=a.workers, sampler=sampler, prefetch_factor=2)
    img, txt = nn.Linear(768, 64), nn.Embedding(1000, 64)
    model = DDP(img)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for i, (x, idx) in enumerate(loader):
        a_, b_ = model(x), txt(idx % 1000)
        logits = nn.functional.normalize(a_, dim=-1) @ nn.functional.normalize(b_, dim=-1).T
        loss = nn.functional.cross_entropy(logits * 10, torch.arange(len(x)))
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.25)
        if rank == 0 and i % 10 == 0:
            logging.info("Train Epoch: 0 [%d/%d] Loss: %.4f", i * 4 * 2, len(ds), loss.item())


if __name__ == "__main__":
    main()
