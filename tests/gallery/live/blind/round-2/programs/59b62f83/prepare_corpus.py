import argparse
import json
import os
import random

p = argparse.ArgumentParser()
p.add_argument("--out", default="data")
args = p.parse_args()
os.makedirs(args.out, exist_ok=True)
rng = random.Random(7)
words = ["alpha", "beta", "gamma", "delta", "loss", "model", "train", "data", "token", "batch"]
sources = {"books": 420, "wiki": 400, "web": 430, "forum": 300}
for i, (name, n) in enumerate(sources.items()):
    with open(os.path.join(args.out, f"part-{i:05d}-{name}.jsonl"), "w") as f:
        for _ in range(n):
            f.write(json.dumps({"text": " ".join(rng.choices(words, k=rng.randint(6, 20)))}) + "\n")
print(f"wrote {len(sources)} files to {args.out}")
