import argparse
import logging

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from streaming import ShardStream

BUCKETS = ["crawl-a", "crawl-b"]


def build_model(dim=128, width=256, depth=4):
    layers = [nn.Linear(dim, width), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 2))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--endpoint", default="http://127.0.0.1:18917")
    ap.add_argument("--shards", type=int, default=400)
    ap.add_argument("--steps", type=int, default=20000)
    ap.add_argument("--batch-size", type=int, default=32)
    ap.add_argument("--workers", type=int, default=2)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s r{rank} %(message)s")
    torch.manual_seed(0)

    stream = ShardStream(args.endpoint, BUCKETS[rank % len(BUCKETS)], args.shards, seed=rank)
    loader = DataLoader(stream, batch_size=args.batch_size, num_workers=args.workers, prefetch_factor=2)
    model = DDP(build_model())
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(optim, args.steps)

    correct = seen = 0
    for step, (x, y) in enumerate(loader):
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optim.zero_grad(set_to_none=True)
        loss.backward()
        optim.step()
        sched.step()
        correct += (out.argmax(-1) == y).sum().item()
        seen += len(y)
        if step % 100 == 0:
            logging.info("step %d loss %.4f acc %.3f", step, loss.item(), correct / seen)
            correct = seen = 0
        if step + 1 == args.steps:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
