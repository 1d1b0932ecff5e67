import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from patches import InkDataset, PatchConfig


class UNetLite(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.enc1 = nn.Conv3d(1, width, 3, padding=1)
        self.enc2 = nn.Conv3d(width, width * 2, 3, stride=2, padding=1)
        self.dec = nn.ConvTranspose3d(width * 2, width, 2, stride=2)
        self.head = nn.Conv3d(width * 2, 1, 1)

    def forward(self, x):
        a = F.relu(self.enc1(x))
        b = F.relu(self.enc2(a))
        return self.head(torch.cat([a, F.relu(self.dec(b))], dim=1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1433)
    args = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed)

    dataset = InkDataset(PatchConfig(seed=args.seed))
    sampler = DistributedSampler(dataset, world, rank, shuffle=True, seed=args.seed)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler,
                        num_workers=1, persistent_workers=True, drop_last=True)
    model = DDP(UNetLite())
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    step = 0
    start = time.time()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            logits = model(batch["image"])
            loss = F.binary_cross_entropy_with_logits(logits, batch["labels"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if rank == 0 and step % 10 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f} "
                      f"({step / (time.time() - start):.1f} it/s)", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
