import argparse
import os
import signal
import socket
import sys
import time
from multiprocessing import connection

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from data import Tiles, scene_order
from feeder import Feeder
from model import build


class Run:
    def __init__(self, rank, args):
        self.rank = rank
        self.args = args
        self.feeder = None
        self.step = 0

    def shutdown(self, signum=None, frame=None):
        if self.feeder is not None:
            self.feeder.close()
        if signum is not None:
            print(f"[rank {self.rank}] stopped by signal {signum} at step {self.step}", flush=True)
            sys.exit(128 + signum)


def worker(rank, args, port):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=args.nprocs)
    run = Run(rank, args)
    signal.signal(signal.SIGTERM, run.shutdown)

    data = Tiles()
    ddp = DDP(build())
    opt = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    try:
        for epoch in range(args.epochs):
            order = scene_order(len(data.strips), data.tiles, rank, args.nprocs, epoch)
            run.feeder = Feeder(data, order, args.batch)
            start = time.time()
            for x, y in run.feeder:
                loss = F.cross_entropy(ddp(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                run.step += 1
            run.feeder.close()
            if rank == 0:
                print(f"epoch {epoch} step {run.step} loss {loss.item():.4f} {time.time() - start:.1f}s", flush=True)
                torch.save(ddp.module.state_dict(), os.path.join(args.out, "last.pt"))
    finally:
        run.shutdown()
    dist.destroy_process_group()


def supervise(ctx):
    alive = {p.sentinel: (rank, p) for rank, p in enumerate(ctx.processes)}
    while alive:
        for sentinel in connection.wait(list(alive)):
            rank, proc = alive.pop(sentinel)
            proc.join()
            if proc.exitcode == 0:
                continue
            print(f"worker {rank} exited with {proc.exitcode}, stopping the others", flush=True)
            for _, other in alive.values():
                other.terminate()
            for _, other in alive.values():
                other.join()
            sys.exit(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--nprocs", type=int, default=3)
    ap.add_argument("--epochs", type=int, default=60)
    ap.add_argument("--batch", type=int, default=4)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ctx = mp.spawn(worker, args=(args, port), nprocs=args.nprocs, join=False)
    supervise(ctx)


if __name__ == "__main__":
    main()
