import argparse
import os

import torch


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("out")
    ap.add_argument("--shards", type=int, default=24)
    ap.add_argument("--samples", type=int, default=48)
    ap.add_argument("--length", type=int, default=32)
    args = ap.parse_args()
    os.makedirs(args.out, exist_ok=True)
    g = torch.Generator().manual_seed(0)
    for i in range(args.shards):
        start = torch.randint(0, 128, (args.samples, 1), generator=g)
        tokens = (start + torch.arange(args.length + 1) * (1 + i % 5)) % 128
        torch.save(tokens.to(torch.int16), os.path.join(args.out, f"shard.{i:05d}.pt"))


if __name__ == "__main__":
    main()
