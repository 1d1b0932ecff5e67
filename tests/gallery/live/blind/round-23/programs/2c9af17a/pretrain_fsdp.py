import argparse
import os
import socket
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from checkpointing import Checkpointer
from monitor import Heartbeat, MetricSink


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        return x + self.ff(self.norm(x))


class ByteModel(nn.Module):
    def __init__(self, dim=48, depth=3):
        super().__init__()
        self.emb = nn.Embedding(256, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.head = nn.Linear(dim, 256)

    def forward(self, x):
        h = self.emb(x)
        for b in self.blocks:
            h = b(h)
        return self.head(h)


@torch.no_grad()
def validate(model, gen, batches):
    total = torch.zeros(())
    for _ in range(batches):
        x = torch.randint(0, 256, (4, 33), generator=gen)
        total += nn.functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        time.sleep(0.2)
    dist.all_reduce(total)
    return total.item() / batches / dist.get_world_size()


def run(rank, args, port, root):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=args.ranks, timeout=timedelta(minutes=40))
    mesh = init_device_mesh("cpu", (args.ranks,))
    torch.manual_seed(1)
    model = ByteModel()
    for b in model.blocks:
        fully_shard(b, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ckpt = Checkpointer(root, model, opt)
    sink = MetricSink()
    Heartbeat(os.path.join(root, f"alive.{rank}")).start()
    gen = torch.Generator().manual_seed(100 + rank)
    for step in range(1, 100000):
        x = torch.randint(0, 256, (4, 33), generator=gen)
        loss = nn.functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0).full_tensor()
        opt.step()
        opt.zero_grad()
        sink.log(step=step, loss=loss.item(), norm=norm.item())
        time.sleep(0.12)
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f} norm {norm.item():.3f}", flush=True)
        if step % 90 == 0:
            ckpt.save(step)
        if step % 150 == 0:
            val = validate(model, gen, args.val_batches)
            if rank == 0:
                print(f"step {step} validation {val:.4f}", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--val-batches", type=int, default=60)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(run, args=(args, port, tempfile.mkdtemp(prefix="bytes_")), nprocs=args.ranks)


if __name__ == "__main__":
    main()
