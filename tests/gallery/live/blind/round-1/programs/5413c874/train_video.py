import argparse
import os
import subprocess
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

FRAMES, H, W = 8, 24, 24
HERE = os.path.dirname(os.path.abspath(__file__))


class ClipReader:
    """Keeps one decoder process open and asks it for clips."""

    def __init__(self):
        self.proc = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "vdecode.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
        )

    def read(self, clip):
        self.proc.stdin.write(f"{clip}\n".encode())
        need = FRAMES * H * W
        chunks = []
        while need:
            part = self.proc.stdout.read(need)
            if not part:
                raise RuntimeError(f"decoder ended, clip {clip}")
            chunks.append(part)
            need -= len(part)
        return np.frombuffer(b"".join(chunks), dtype=np.uint8).reshape(FRAMES, H, W)

    def close(self):
        self.proc.stdin.close()
        self.proc.wait()


class ClipDataset(torch.utils.data.Dataset):
    def __init__(self, clips):
        self.clips = clips
        self.reader = ClipReader()

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, i):
        clip = self.clips[i]
        video = torch.from_numpy(self.reader.read(clip).copy()).float().div_(255).sub_(0.5)
        return video.unsqueeze(0), clip % 5


class C3D(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv3d(1, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU(), nn.MaxPool3d(2),
            nn.Conv3d(8, 16, 3, padding=1), nn.BatchNorm3d(16), nn.ReLU(), nn.AdaptiveAvgPool3d(1),
        )
        self.fc = nn.Linear(16, classes)

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=10)
    ap.add_argument("--clips", type=int, default=6000)
    ap.add_argument("--batch-size", type=int, default=8)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    dataset = ClipDataset(list(range(rank, args.clips, world)))
    loader = torch.utils.data.DataLoader(dataset, batch_size=args.batch_size, shuffle=True, drop_last=True)
    model = DDP(C3D())
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    for epoch in range(args.epochs):
        t0, seen = time.time(), 0
        for it, (video, target) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(video), target)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            seen += len(video) * world
            if rank == 0 and it % 20 == 0:
                print(f"epoch {epoch} [{it}/{len(loader)}] loss {loss.item():.3f} "
                      f"{seen / (time.time() - t0):.1f} clips/s", flush=True)
        if rank == 0:
            torch.save(model.module.state_dict(), "c3d_last.pt")
    dataset.reader.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
