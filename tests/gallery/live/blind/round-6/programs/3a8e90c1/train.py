import argparse
import os

import torch.distributed as dist
import torch.multiprocessing as mp

from onmini.producer import BatchReceiver, batch_producer
from onmini.trainer import Trainer


def run(opt, rank, queue, semaphore):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(opt.world_size))
    dist.init_process_group("gloo")
    Trainer(opt, rank, BatchReceiver(queue, semaphore)).train()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--world-size", type=int, default=2)
    p.add_argument("--train-steps", type=int, default=1000)
    p.add_argument("--queue-size", type=int, default=40)
    p.add_argument("--queue-slack", type=int, default=3)
    p.add_argument("--report-every", type=int, default=20)
    p.add_argument("--valid-steps", type=int, default=40)
    p.add_argument("--accum-count", type=int, nargs=2, default=[1, 8])
    p.add_argument("--accum-steps", type=int, default=60)
    p.add_argument("--seed", type=int, default=1234)
    opt = p.parse_args()
    ctx = mp.get_context("spawn")
    semaphore = ctx.Semaphore(opt.world_size * opt.queue_size)
    queues, procs = [], []
    for rank in range(opt.world_size):
        q = ctx.Queue(opt.queue_size + opt.queue_slack)
        queues.append(q)
        procs.append(ctx.Process(target=run, args=(opt, rank, q, semaphore)))
        procs[-1].start()
    producer = ctx.Process(target=batch_producer, args=(queues, semaphore, opt), daemon=True)
    producer.start()
    for p in procs:
        p.join()
    producer.terminate()


if __name__ == "__main__":
    main()
