"""Writes a small token corpus, split into one directory of shards per reader."""
import os
import random
import sys


def main(root, readers=3, shards=40):
    rng = random.Random(0)
    for reader in range(readers):
        folder = os.path.join(root, f"part-{reader}")
        os.makedirs(folder, exist_ok=True)
        for shard in range(shards):
            rows = 600
            if reader == 1 and shard % 8 == 2:
                rows = 9000
            with open(os.path.join(folder, f"{shard:05d}.txt"), "w") as f:
                for _ in range(rows):
                    start, stride = rng.randrange(256), rng.randrange(1, 7)
                    f.write(" ".join(str((start + stride * i) % 256) for i in range(33)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
