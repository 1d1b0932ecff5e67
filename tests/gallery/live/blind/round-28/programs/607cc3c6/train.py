import argparse
import collections
import os
import random
import tempfile
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from structures import DistanceHead, load_shard, sample_lengths
from work_queue import WorkQueue


def open_queue(rank, n_items):
    path = [None]
    if rank == 0:
        path[0] = os.path.join(tempfile.mkdtemp(prefix="shards-"), "queue.db")
        WorkQueue(path[0], owner=-1).create(sample_lengths(n_items))
    dist.broadcast_object_list(path, src=0)
    return WorkQueue(path[0], owner=rank)


class ShardFeed:
    """Fresh shards while the bucket has some, afterwards replays of recent ones."""

    def __init__(self, queue, bucket, keep=32):
        self.queue, self.bucket = queue, bucket
        self.recent = collections.deque(maxlen=keep)
        self.fresh = True

    def next(self):
        if self.fresh:
            item = self.queue.claim_next(self.bucket)
            if item is not None:
                self.recent.append(item)
                return item
            self.fresh = False
        return random.choice(self.recent)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--max-steps", type=int, default=500)
    p.add_argument("--items", type=int, default=1500)
    args = p.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(DistanceHead())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    queue = open_queue(rank, args.items)
    feed = ShardFeed(queue, bucket=rank)

    for step in range(args.max_steps):
        item_id, seed, length = feed.next()
        coords, target = load_shard(seed, length)
        pred = model(coords + 0.3 * torch.randn_like(coords))
        loss = (pred - target).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.08)
        queue.mark_done(item_id)
        if step % 10 == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean, op=dist.ReduceOp.SUM)
            if rank == 0:
                print(f"step {step:5d} loss {mean.item() / dist.get_world_size():.3f} {queue.counts()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
