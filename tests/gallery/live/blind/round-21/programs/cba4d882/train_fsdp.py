import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from checkpointing import PeriodicCheckpointer
from shards import TokenShard


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        return x + F.gelu(self.mix(self.norm(x)).cumsum(1) / 8)


class Decoder(nn.Module):
    def __init__(self, vocab=128, width=48, depth=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, vocab)

    def forward(self, ids):
        x = self.embed(ids)
        for b in self.blocks:
            x = b(x)
        return self.head(x)


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=60))
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("dp",))
    folder = [tempfile.mkdtemp(prefix="dcp_") if rank == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    torch.manual_seed(0)
    model = Decoder()
    for b in model.blocks:
        fully_shard(b, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = TokenShard(rank)
    ckpt = PeriodicCheckpointer(folder[0], every_seconds=15)

    for step in range(1, 100000):
        ids = data.sample(8)
        time.sleep(0.1)
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if ckpt.due():
            ckpt.save(step, model, opt)


if __name__ == "__main__":
    main()
