import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from clips import CLIP_BYTES, ClipDataset, build_manifest, shard


def make_model():
    return nn.Sequential(nn.Linear(CLIP_BYTES, 128), nn.GELU(), nn.Linear(128, 10))


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=45))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    model = DDP(make_model())
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    loss_fn = nn.CrossEntropyLoss()

    dataset = ClipDataset(shard(build_manifest(), rank, world))
    loader = DataLoader(dataset, batch_size=4, num_workers=1, prefetch_factor=2,
                        persistent_workers=True, drop_last=True)
    step = 0
    for epoch in range(10):
        for clips, labels in loader:
            loss = loss_fn(model(clips), labels)
            time.sleep(0.25)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % 10 == 0 and rank == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
