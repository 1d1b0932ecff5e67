import argparse
import hashlib
import io
import os
import time
import zlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class PatchViT(nn.Module):
    def __init__(self, img=32, patch=8, dim=64, depth=2, classes=10):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, patch, stride=patch)
        n = (img // patch) ** 2
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, n + 1, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        t = self.patch(x).flatten(2).transpose(1, 2)
        t = torch.cat([self.cls.expand(len(t), -1, -1), t], dim=1) + self.pos
        return self.head(self.enc(t)[:, 0])


class MemoryBank:
    """Feature queue that belongs to the checkpoint."""

    def __init__(self, size, dim):
        self.feats = F.normalize(torch.randn(size, dim), dim=-1)
        self.ptr = 0

    def push(self, x):
        idx = (self.ptr + torch.arange(len(x))) % len(self.feats)
        self.feats[idx] = x
        self.ptr = int(idx[-1]) + 1


def save_checkpoint(path, payload):
    t0 = time.time()
    buf = io.BytesIO()
    torch.save(payload, buf)
    blob = zlib.compress(buf.getvalue(), 6)
    with open(path + ".tmp", "wb") as f:
        f.write(blob)
        f.flush()
        os.fsync(f.fileno())
    os.replace(path + ".tmp", path)
    with open(path + ".sha256", "w") as f:
        f.write(hashlib.sha256(blob).hexdigest() + "\n")
    return time.time() - t0


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=50000)
    ap.add_argument("--save-every", type=int, default=150)
    ap.add_argument("--bank", type=int, default=400000)
    ap.add_argument("--bs", type=int, default=16)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(PatchViT())
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    bank = MemoryBank(args.bank, 64)
    os.makedirs("ckpt", exist_ok=True)
    gen = torch.Generator().manual_seed(rank)
    t0 = time.time()

    for step in range(1, args.steps + 1):
        x = torch.randn(args.bs, 3, 32, 32, generator=gen)
        y = (x.mean((1, 2, 3)) > 0).long()
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        bank.push(F.normalize(torch.randn(args.bs, 64), dim=-1))
        if step % 25 == 0 and rank == 0:
            print(f"{time.time() - t0:7.1f}s step {step} loss {loss.item():.4f}", flush=True)
        if step % args.save_every == 0:
            if rank == 0:
                took = save_checkpoint("ckpt/last.pt.z", {"model": model.module.state_dict(), "opt": opt.state_dict(),
                                                         "bank": bank.feats, "step": step})
                print(f"{time.time() - t0:7.1f}s checkpoint at {step} in {took:.1f}s", flush=True)
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
