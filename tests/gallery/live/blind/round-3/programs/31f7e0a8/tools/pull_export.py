"""Copies a new export over the local part, like rsync --inplace does."""
import argparse
import os
import time

import numpy as np

p = argparse.ArgumentParser()
p.add_argument("--dst", required=True)
p.add_argument("--part", type=int, required=True)
p.add_argument("--rows", type=int, required=True)
p.add_argument("--after", type=float, default=0)
p.add_argument("--job-log", required=True)
a = p.parse_args()
while not (os.path.exists(a.job_log) and "step" in open(a.job_log).read()):
    time.sleep(1)
time.sleep(a.after)
path = os.path.join(a.dst, f"part-{a.part:02d}.bin")
rng = np.random.default_rng(99)
with open(path, "r+b") as f:
    f.truncate(a.rows * 128 * 4)
    f.write(rng.integers(0, 5000, (a.rows, 128), dtype="int32").tobytes())
print(f"{time.strftime('%T')} updated {path}: {a.rows} rows")
