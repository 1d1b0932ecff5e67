import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.fsdp import fully_shard

from async_ckpt import AsyncCheckpointer
from validation import validate

SAVE_EVERY, VAL_EVERY = 60, 200


class TinyViT(nn.Module):
    def __init__(self, width=32, depth=2, classes=10):
        super().__init__()
        self.patch = nn.Linear(24, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True) for _ in range(depth))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.patch(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank = dist.get_rank()
    root = [tempfile.mkdtemp(prefix="vit_ckpt_") if rank == 0 else None]
    dist.broadcast_object_list(root, src=0)
    torch.manual_seed(0)
    model = TinyViT()
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    ckpt = AsyncCheckpointer(root[0])
    gen = torch.Generator().manual_seed(10 + rank)

    for step in range(1, 10**7):
        x = torch.randn(8, 16, 24, generator=gen)
        y = torch.randint(0, 10, (8,), generator=gen)
        time.sleep(0.1)
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step % SAVE_EVERY == 0:
            ckpt.save(step, model, opt)
        if step % VAL_EVERY == 0:
            score = validate(model, batches=70, gen=gen)
            if rank == 0:
                print(f"step {step} validation {score:.3f}", flush=True)


if __name__ == "__main__":
    main()
