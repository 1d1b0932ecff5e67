import argparse
import json
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from common import tie_to_parent
from graph import Partition
from sage import Sage


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--partitions")
    args = ap.parse_args()
    tie_to_parent()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    spec = json.load(open(args.partitions))["partitions"][rank]
    part = Partition(seed=rank, **spec)
    print(f"[{rank}] partition: {part.n} nodes {part.edges()} edges")
    torch.manual_seed(0)
    model = DDP(Sage(64, 96, 8))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    t0 = time.time()
    for step in range(1, 1000000):
        x, nbr_feats, y = part.sample_minibatch()
        loss = torch.nn.functional.cross_entropy(model(x, nbr_feats), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 5 == 0:
            print(f"step {step} loss {loss.item():.4f} time/step {(time.time() - t0) / 5:.2f}s")
            t0 = time.time()


if __name__ == "__main__":
    main()
