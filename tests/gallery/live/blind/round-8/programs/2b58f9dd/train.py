import argparse
import random
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from features import FeatureClient


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--service", required=True)
    ap.add_argument("--steps", type=int, default=200000)
    ap.add_argument("--batch", type=int, default=64)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    client = FeatureClient(args.service, f"p{rank}")
    client.wait_ready()
    dist.barrier()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(24, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1))
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    rng = random.Random(rank)
    t0, seen = time.time(), 0
    for step in range(1, args.steps + 1):
        feats = client.fetch([rng.randrange(1_000_000) for _ in range(args.batch)])
        label = (feats.sum(1, keepdim=True) > 0).float()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(feats), label)
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen += args.batch * dist.get_world_size()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f} {seen / (time.time() - t0):.1f} users/s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
