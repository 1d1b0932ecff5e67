import argparse
import json
import os
import random

TAXA = ["galaxy", "star", "quasar", "artifact", "asteroid", "nebula"]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", required=True)
    ap.add_argument("--shards", type=int, default=3)
    ap.add_argument("--rows", type=int, default=2400)
    args = ap.parse_args()
    for s in range(args.shards):
        rng = random.Random(100 + s)
        with open(os.path.join(args.out, f"train-{s:05d}.jsonl"), "w") as f:
            for i in range(args.rows):
                label = rng.choice(TAXA)
                if s == 1 and i % 1200 == 1111:
                    label = "unknown"
                seed = rng.randrange(1 << 30)
                f.write(json.dumps({"id": f"{s}-{i}", "label": label, "seed": seed}) + "\n")


if __name__ == "__main__":
    main()
