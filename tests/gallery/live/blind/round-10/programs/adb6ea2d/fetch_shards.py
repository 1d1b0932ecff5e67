"""Mirror of the capture store: lays down one tar after the other."""
import argparse
import io
import os
import tarfile
import time

import numpy as np


def add(tar, name, payload):
    info = tarfile.TarInfo(name)
    info.size = len(payload)
    tar.addfile(info, io.BytesIO(payload))


def write_shard(path, index, samples):
    rng = np.random.default_rng(index)
    part = path + ".part"
    with tarfile.open(part, "w") as tar:
        for i in range(samples):
            label = int(rng.integers(5))
            img = rng.normal(0, 1, (1, 20, 20)).astype(np.float32)
            img[0, 4 * label: 4 * label + 4, 4:16] += 0.3
            buf = io.BytesIO()
            np.save(buf, img)
            add(tar, f"{index:04d}_{i:04d}.npy", buf.getvalue())
            add(tar, f"{index:04d}_{i:04d}.cls", str(label).encode())
    os.replace(part, path)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", required=True)
    ap.add_argument("--shards", type=int, default=60)
    ap.add_argument("--samples", type=int, default=96)
    ap.add_argument("--rate", type=float, default=0.35, help="shards per second")
    args = ap.parse_args()
    for index in range(args.shards):
        write_shard(os.path.join(args.out, f"cap-{index:04d}.tar"), index, args.samples)
        if index >= 9:
            time.sleep(1 / args.rate)
    print("fetch: all shards in place", flush=True)
