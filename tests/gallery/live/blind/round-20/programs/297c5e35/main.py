import argparse
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F

from shards import Fetcher, loader, wait_for


class Tagger(nn.Module):
    def __init__(self, dim=128, depth=3, classes=12):
        super().__init__()
        self.inp = nn.Linear(40, dim)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.0, batch_first=True) for _ in range(depth)
        )
        self.out = nn.Linear(dim, classes)

    def forward(self, mel):
        h = self.inp(mel[:, ::2])
        for block in self.blocks:
            h = block(h)
        return self.out(h.mean(1))


def run(rank, world, port, work):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(world))
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (world,))
    saver = dist.new_group(backend="gloo")
    torch.manual_seed(0)
    model = Tagger()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    if rank == 0:
        Fetcher(f"{work}/shards", 60).start()
    step, saving, epoch, t = 0, None, 0, time.perf_counter()
    while True:
        urls = wait_for(f"{work}/shards", 4)
        seen = torch.tensor([len(urls)])
        dist.all_reduce(seen, op=dist.ReduceOp.MIN)
        urls = urls[:seen.item()]
        for n, (mel, y) in enumerate(loader(urls, 300, seed=1000 * epoch + rank)):
            loss = F.cross_entropy(model(mel), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % 25 == 0:
                mean = loss.detach().clone()
                dist.all_reduce(mean)
                if rank == 0:
                    now = time.perf_counter()
                    print(f"epoch {epoch} step {step} loss {mean.item() / world:.3f} shards {len(urls)} "
                          f"{25 / (now - t):.1f} it/s", flush=True)
                    t = now
            if n in (100, 200):
                if saving is not None:
                    saving.result()
                weights, state = get_state_dict(model, opt)
                saving = dcp.async_save({"model": weights, "optim": state, "step": step},
                                        checkpoint_id=f"{work}/ckpt/{n}", process_group=saver)
        epoch += 1


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--work", required=True)
    args = p.parse_args()
    mp.spawn(run, args=(args.ranks, free_port(), args.work), nprocs=args.ranks)
