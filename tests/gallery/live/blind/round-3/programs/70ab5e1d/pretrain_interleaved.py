import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn

from pipeline.p2p import P2P
from pipeline.schedules import forward_interleaved, forward_no_overlap


def num_microbatches(args, consumed):
    start, inc, samples = args.rampup_batch_size
    if consumed < samples:
        return start
    return args.global_batch_size


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--pipeline-model-parallel-size", type=int, default=2)
    p.add_argument("--num-virtual-stages", type=int, default=2)
    p.add_argument("--rampup-batch-size", type=int, nargs=3, default=[1, 1, 100])
    p.add_argument("--global-batch-size", type=int, default=4)
    p.add_argument("--hidden", type=int, default=128)
    p.add_argument("--train-iters", type=int, default=100000)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    chunks = [nn.Sequential(nn.Linear(args.hidden, args.hidden), nn.GELU()) for _ in range(args.num_virtual_stages)]
    p2p = P2P((16, args.hidden))
    consumed = 0
    with torch.no_grad():
        for it in range(1, args.train_iters + 1):
            n = num_microbatches(args, consumed)
            inputs = [torch.randn(16, args.hidden) for _ in range(n)]
            step = forward_no_overlap if n == 1 else forward_interleaved
            out = step(chunks, p2p, inputs)
            consumed += n
            time.sleep(0.3)
            if rank == dist.get_world_size() - 1 and it % 10 == 0:
                norm = sum(o.norm().item() for o in out) / len(out)
                print(f" iteration {it} | consumed samples: {consumed} | global batch size: {n} | out norm: {norm:.3f}",
                      flush=True)


if __name__ == "__main__":
    main()
