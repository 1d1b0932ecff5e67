import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from checkpointing import AsyncSaver
from metrics_server import start_metrics_server


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class TokenModel(nn.Module):
    def __init__(self, vocab=200, dim=48, depth=3):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.emb(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x).clone()


def document_lengths(step, world):
    """Documents of very different length; each rank gets its share of the long ones."""
    g = torch.Generator().manual_seed(step // world)
    base = torch.tensor([56, 64, 72, 104])[:world][torch.randperm(world, generator=g)]
    return base.roll(step % world).tolist()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(1)
    model = TokenModel()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3)
    saver = AsyncSaver()
    server, inbox = start_metrics_server() if rank == 0 else (None, None)
    gen = torch.Generator().manual_seed(rank)
    for step in range(1, 1_000_000):
        length = document_lengths(step, world)[rank]
        ids = torch.randint(0, 200, (2, length + 1), generator=gen)
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        time.sleep(length * 0.002)
        loss.backward()
        optim.step()
        optim.zero_grad()
        if step % 25 == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean, op=dist.ReduceOp.AVG if dist.get_backend() == "nccl" else dist.ReduceOp.SUM)
            if rank == 0:
                inbox.put({"step": step, "tokens": length * 2})
                print(f"step {step} loss {mean.item() / world:.3f}", flush=True)
        if step % 100 == 0:
            saver.save(model, optim, step)


if __name__ == "__main__":
    main()
