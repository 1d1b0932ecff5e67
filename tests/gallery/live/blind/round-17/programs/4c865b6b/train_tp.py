import logging
import os
import threading
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from prefetch import ShardPrefetcher

log = logging.getLogger("train")


class Mlp(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, vocab=128, dim=64, layers=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.mlps = nn.ModuleList(Mlp(dim) for _ in range(layers))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        h, _ = self.rnn(self.embed(ids))
        for mlp in self.mlps:
            h = mlp(h)
        return self.head(h)


def local(t):
    return t.to_local() if isinstance(t, DTensor) else t


def sync_grads(model, group):
    grads = [local(p.grad) for p in model.parameters()]
    flat = torch.cat([g.flatten() for g in grads])
    dist.all_reduce(flat, group=group)
    flat /= dist.get_world_size(group)
    offset = 0
    for g in grads:
        g.copy_(flat[offset:offset + g.numel()].view_as(g))
        offset += g.numel()


class Writer(threading.Thread):
    def __init__(self, path):
        super().__init__(name="ckpt-writer", daemon=True)
        self.path, self.job, self.event = path, None, threading.Event()

    def submit(self, state):
        self.job = state
        self.event.set()

    def run(self):
        while True:
            self.event.wait()
            self.event.clear()
            torch.save(self.job, self.path + ".tmp")
            os.replace(self.path + ".tmp", self.path)


def train(rank, args, port, url, run_dir):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=args.tp * args.dp)
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING, format="%(asctime)s %(message)s")
    mesh = init_device_mesh("cpu", (args.dp, args.tp), mesh_dim_names=("dp", "tp"))
    dp_rank, tp_rank = mesh.get_local_rank("dp"), mesh.get_local_rank("tp")

    torch.manual_seed(0)
    model = Net()
    plan = {}
    for i in range(len(model.mlps)):
        plan[f"mlps.{i}.up"], plan[f"mlps.{i}.down"] = ColwiseParallel(), RowwiseParallel()
    parallelize_module(model, mesh["tp"], plan)
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    writer = Writer(os.path.join(run_dir, f"model-{rank}.pt"))
    writer.start()
    prefetcher = ShardPrefetcher(url, os.path.join(run_dir, f"cache-{rank}"), dp_rank)

    step, tic = 0, time.time()
    for rows in prefetcher.shards():
        for chunk in rows.split(16):
            step += 1
            loss = F.cross_entropy(model(chunk[:, :-1]).flatten(0, 1), chunk[:, 1:].flatten())
            optim.zero_grad()
            loss.backward()
            sync_grads(model, mesh.get_group("dp"))
            optim.step()
            if step % 20 == 0:
                log.info("step %d loss %.4f %.0f ms/step", step, loss.item(), 1e3 * (time.time() - tic) / step)
            if step % 150 == 0:
                writer.submit({k: local(v).clone() for k, v in model.state_dict().items()})
                dist.barrier()
        if step >= args.steps:
            break
    dist.destroy_process_group()
