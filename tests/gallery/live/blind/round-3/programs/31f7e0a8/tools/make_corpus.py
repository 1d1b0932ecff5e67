import argparse
import os

import numpy as np

p = argparse.ArgumentParser()
p.add_argument("--out", required=True)
p.add_argument("--parts", type=int, default=2)
p.add_argument("--rows", type=int, default=1000)
a = p.parse_args()
os.makedirs(a.out, exist_ok=True)
for i in range(a.parts):
    rng = np.random.default_rng(i)
    with open(os.path.join(a.out, f"part-{i:02d}.bin"), "wb") as f:
        f.write(rng.integers(0, 5000, (a.rows, 128), dtype="int32").tobytes())
