import fcntl
import os
import sys
import time

import numpy as np


class ShardLock:
    def __init__(self, path):
        self.path = path + ".lock"

    def __enter__(self):
        self.f = open(self.path, "w")
        fcntl.flock(self.f, fcntl.LOCK_EX)
        return self

    def __exit__(self, *exc):
        fcntl.flock(self.f, fcntl.LOCK_UN)
        self.f.close()


def shard_path(folder, index):
    return os.path.join(folder, f"shard-{index:05d}.npz")


def make_shard(index, n=1536):
    rng = np.random.default_rng(index)
    lengths = rng.integers(6, 40, n).astype(np.int64)
    tokens = rng.integers(1, 300, (n, 40)).astype(np.int64)
    labels = (tokens[:, 0] + tokens[:, 1]) % 7
    return {"tokens": tokens, "lengths": lengths, "labels": labels}


def main():
    folder, ahead = sys.argv[1], int(sys.argv[2])
    index = 0
    while os.getppid() != 1:
        have = len([f for f in os.listdir(folder) if f.endswith(".npz")])
        if have > ahead:
            time.sleep(1.0)
            continue
        path = shard_path(folder, index)
        with ShardLock(path):
            data = make_shard(index)
            with open(path + ".part", "wb") as f:
                np.savez(f, **data)
            time.sleep(0.5)
            os.replace(path + ".part", path)
        index += 1


if __name__ == "__main__":
    main()
