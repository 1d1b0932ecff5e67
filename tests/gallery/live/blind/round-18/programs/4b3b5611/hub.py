import os
import time

import numpy as np

LOCKS = ".lock"


class FileLock:
    def __init__(self, path, poll=0.2):
        self.path = path
        self.poll = poll

    def __enter__(self):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        while True:
            try:
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                return self
            except FileExistsError:
                time.sleep(self.poll)

    def __exit__(self, *exc):
        os.unlink(self.path)


def read_remote(name, mirror):
    """Yields the blocks of one shard as they come in from the mirror."""
    index = int(name.split("-")[1])
    rng = np.random.default_rng(index)
    blocks = 8 if index % 8 else 600
    for _ in range(blocks):
        time.sleep(mirror.block_delay)
        yield rng.standard_normal((64, 33)).astype("float32")


def fetch(name, cache_dir, mirror):
    """Returns the local path of a shard, downloading it once per host."""
    target = os.path.join(cache_dir, name + ".npy")
    with FileLock(os.path.join(cache_dir, LOCKS, name)):
        if not os.path.exists(target):
            data = np.concatenate(list(read_remote(name, mirror)))
            tmp = target + ".part"
            with open(tmp, "wb") as f:
                np.save(f, data)
            os.replace(tmp, target)
    return target
