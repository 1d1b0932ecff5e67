import argparse
import logging
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

from clicklog import NUM_DENSE, NUM_SPARSE, ClickLogReader
from model import DLRM
from pipeline import TrainPipeline


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def worker(rank, args, port):
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [rank{rank}] %(message)s")
    log = logging.getLogger("dlrm")
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=args.nproc)
    torch.manual_seed(1234)
    device = torch.device("cpu")

    reader = ClickLogReader(args.data, rank, args.nproc, args.batch_size, args.epochs)
    log.info("%d parts assigned", len(reader.parts))
    model = DDP(DLRM(NUM_DENSE, NUM_SPARSE))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
    pipeline = TrainPipeline(model, optimizer, device)

    it = iter(reader)
    step, t0, running = 0, time.time(), 0.0
    while True:
        try:
            loss = pipeline.progress(it)
        except StopIteration:
            break
        running += loss.item()
        step += 1
        if step % 20 == 0 and rank == 0:
            dt = time.time() - t0
            log.info("step %d | bce %.4f | %.0f samples/s", step, running / 20,
                     20 * args.batch_size * args.nproc / dt)
            running, t0 = 0.0, time.time()
    dist.barrier()
    if rank == 0:
        torch.save(model.module.state_dict(), "/tmp/dlrm_final.pt")
    dist.destroy_process_group()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--nproc", type=int, default=3)
    p.add_argument("--data", default="data")
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--epochs", type=int, default=1)
    args = p.parse_args()
    mp.spawn(worker, args=(args, free_port()), nprocs=args.nproc)


if __name__ == "__main__":
    main()
