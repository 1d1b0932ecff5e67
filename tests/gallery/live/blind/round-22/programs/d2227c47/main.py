import argparse
import multiprocessing as mp
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel as DDP

from feeder import Feeder
from memory_bank import MemoryBank


class Encoder(nn.Module):
    def __init__(self, dim=16, hidden=48):
        super().__init__()
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1])


def run(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(world))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("dp",))
    torch.manual_seed(0)
    model = DDP(Encoder(), process_group=mesh.get_group())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    bank = MemoryBank(mesh["dp"])
    feeder = Feeder(rank, world)
    began = time.time()

    for step in range(1, 1000000):
        length, batch = feeder.next()
        z = model(batch)
        logits = z @ bank.prototypes().T
        loss = nn.functional.cross_entropy(logits, logits.detach().argmax(-1)) + 0.01 * z.pow(2).mean()
        loss.backward()
        time.sleep(0.006 * length)
        optimizer.step()
        optimizer.zero_grad()
        bank.update(z.detach())
        if step % 10 == 0 and rank == 0:
            print(f"{time.time() - began:7.1f}s step {step} length {length} loss {loss.item():.4f}", flush=True)
        if step % 80 == 0:
            bank.compact(step // 80)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", type=int, default=3)
    args = parser.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ctx = mp.get_context("spawn")
    procs = [ctx.Process(target=run, args=(r, args.world, port), name=f"trainer-{r}") for r in range(args.world)]
    for p in procs:
        p.start()
    for p in procs:
        p.join()
