import datetime
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from stream import build_stream, collate

WORLD = 3
EPOCHS = 50


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@torch.no_grad()
def validate(model, rank):
    g = torch.Generator().manual_seed(7 + rank)
    x = torch.randn(256, 24, generator=g)
    acc = ((model(x).argmax(-1) == (x.sum(-1) > 0)).float().mean())
    dist.barrier()
    dist.all_reduce(acc)
    return (acc / dist.get_world_size()).item()


def run(rank, port):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD, timeout=datetime.timedelta(minutes=45))
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 2))
    ddp = DistributedDataParallel(net)
    opt = torch.optim.Adam(ddp.parameters(), lr=1e-3)
    loader = DataLoader(build_stream(rank, WORLD), batch_size=8, collate_fn=collate, drop_last=True)
    for epoch in range(EPOCHS):
        for it, (x, y) in enumerate(loader):
            loss = F.cross_entropy(ddp(x), y)
            time.sleep(0.22)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if it % 10 == 0 and rank == 0:
                print(f"epoch {epoch} it {it} loss {loss.item():.4f}", flush=True)
        acc = validate(net, rank)
        if rank == 0:
            print(f"epoch {epoch} val acc {acc:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, args=(free_port(),), nprocs=WORLD)
