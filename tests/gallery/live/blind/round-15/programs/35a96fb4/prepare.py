"""Cuts the click log into shards of whole sessions."""
import argparse
import json
import os
import random


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", required=True)
    p.add_argument("--shards", type=int, default=12)
    args = p.parse_args()
    rng = random.Random(3)
    files = [open(os.path.join(args.out, f"part-{i:03d}.jsonl"), "w") for i in range(args.shards)]
    for session in range(6000):
        user = rng.randrange(5000)
        out = files[hash((user * 2654435761) & 0xFFFFFFFF) % args.shards]
        row = {"user": user, "items": [rng.randrange(2000) for _ in range(8)], "label": rng.random() < 0.3}
        out.write(json.dumps(row) + "\n")
    for f in files:
        f.close()


if __name__ == "__main__":
    main()
