import argparse
import time

import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader

from pose_data import PoseDataset, SubsetPerEpoch


class PoseNet(nn.Module):
    def __init__(self, joints=17, c=16):
        super().__init__()
        self.joints = joints
        self.body = nn.Sequential(
            nn.Conv2d(1, c, 3, 2, 1), nn.BatchNorm2d(c), nn.ReLU(),
            nn.Conv2d(c, 2 * c, 3, 2, 1), nn.BatchNorm2d(2 * c), nn.ReLU(),
            nn.Conv2d(2 * c, 4 * c, 3, 2, 1), nn.BatchNorm2d(4 * c), nn.ReLU(),
        )
        self.head = nn.Linear(4 * c * 36, joints * 2)

    def forward(self, x):
        return self.head(self.body(x).flatten(1)).view(-1, self.joints, 2)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--annotations", type=int, default=3000)
    p.add_argument("--samples-per-epoch", type=int, default=192)
    p.add_argument("--batch-size", type=int, default=12)
    p.add_argument("--epochs", type=int, default=2000)
    p.add_argument("--workers", type=int, default=1)
    args = p.parse_args()

    accelerator = Accelerator(cpu=True)
    torch.set_num_threads(1)
    set_seed(3)
    dataset = PoseDataset(args.annotations)
    sampler = SubsetPerEpoch(len(dataset), args.samples_per_epoch)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler, num_workers=args.workers,
                        multiprocessing_context="spawn", drop_last=True)
    model = PoseNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        start, total, n = time.time(), 0.0, 0
        for images, joints in loader:
            loss = nn.functional.smooth_l1_loss(model(images), joints)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            total, n = total + loss.item(), n + 1
        accelerator.print(f"epoch {epoch} iters {n} loss {total / n:.4f} time {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
