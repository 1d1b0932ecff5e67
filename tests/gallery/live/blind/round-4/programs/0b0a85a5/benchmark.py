import argparse
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from bert import MiniBert, fake_batch


def init_distribution(backend):
    print(f"init_distribution: rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}, "
          f"master {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}")
    dist.init_process_group(backend=backend)
    print("init_distribution done")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--backend", default="nccl")
    args = ap.parse_args()
    print(f"job {os.environ['JOB_NAME']} torch {torch.__version__}")
    init_distribution(args.backend)
    model = DDP(MiniBert())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    t = time.time()
    for step in range(100000):
        ids, labels = fake_batch(step * 2 + dist.get_rank())
        loss = model(ids, labels)
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.3f} {10 * ids.shape[0] / (time.time() - t):.1f} samples/s")
            t = time.time()


if __name__ == "__main__":
    main()
