import argparse
import logging
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from checkpoint_utils import fetch_checkpoint

torch.set_num_threads(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--load-path", required=True)
    p.add_argument("--warmup-batches", type=int, default=60)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s rank{rank} %(message)s")
    log = logging.getLogger("finetune")
    probe = torch.ones(1)
    for i in range(args.warmup_batches):
        dist.all_reduce(probe)
        probe.fill_(1)
        time.sleep(0.05)
    log.info("communication check done")
    path = fetch_checkpoint(args.load_path)
    with open(path, "rb") as f:
        seed = int.from_bytes(f.read(4), "little") % 2**31
    torch.manual_seed(seed)
    model = DDP(nn.Linear(32, 8))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for ba in range(100000):
        loss = model(torch.randn(16, 32)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.1)
        if ba % 20 == 0:
            log.info("ba %d loss %.4f", ba, loss.item())


if __name__ == "__main__":
    main()
