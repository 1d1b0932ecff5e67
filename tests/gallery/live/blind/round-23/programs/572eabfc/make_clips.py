"""Writes a folder of small raw clips and an index."""
import json
import random
import sys
from pathlib import Path

N_CLIPS = 240
FRAMES = 12
SIDE = 16


def main(root):
    rng = random.Random(6)
    root = Path(root)
    index = []
    for i in range(N_CLIPS):
        label = rng.randrange(4)
        body = bytes(min(255, max(0, int(60 * label + rng.gauss(20, 15)))) for _ in range(FRAMES * SIDE * SIDE))
        damaged = rng.randrange(3) if i % 8 == 5 else 0
        if i == 151:
            damaged = 1800
        name = f"clip_{i:04d}.raw"
        (root / name).write_bytes(body)
        index.append({"file": name, "label": label, "damaged_packets": damaged})
    (root / "index.json").write_text(json.dumps(index))


if __name__ == "__main__":
    main(sys.argv[1])
