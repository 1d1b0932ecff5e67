import argparse
import multiprocessing
import os
import socket
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

from engine import make_model, train_one_epoch, validate, write_checkpoint
from pipeline import make_loader
from shards import serve, write_shards


def worker(rank, args, port, base, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=args.nproc)
    log = (lambda m: print(m, flush=True)) if rank == 0 else (lambda m: None)
    torch.manual_seed(0)
    model = DDP(make_model())
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    train = make_loader(base, range(args.shards - 1), args.batch_size, args.steps, seed=17 + rank)
    val = make_loader(base, [args.shards - 1], args.batch_size, 3, seed=5 + rank, workers=0)
    for epoch in range(args.epochs):
        train_one_epoch(model, opt, train, epoch, log)
        log(f"epoch {epoch} acc {validate(model, val):.3f}")
        if epoch % 2 == 1:
            write_checkpoint(model, opt, os.path.join(folder, "last.pt"), epoch)
    dist.destroy_process_group()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--nproc", type=int, default=2)
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--steps", type=int, default=150)
    p.add_argument("--batch-size", type=int, default=24)
    p.add_argument("--shards", type=int, default=6)
    args = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="wds-") as folder:
        write_shards(os.path.join(folder, "data"), args.shards)
        here, there = multiprocessing.Pipe()
        server = multiprocessing.get_context("fork").Process(target=serve, args=(os.path.join(folder, "data"), there), daemon=True)
        server.start()
        base = f"http://127.0.0.1:{here.recv()}"
        print(f"serving {args.shards} shards at {base}", flush=True)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        mp.spawn(worker, args=(args, port, base, folder), nprocs=args.nproc)


if __name__ == "__main__":
    main()
