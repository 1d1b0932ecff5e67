import multiprocessing as mp
import os
import random
import time

import torch


class CacheLock:
    """Lock file next to a cache entry, shared by everyone who uses the cache folder."""

    def __init__(self, path, poll=0.25):
        self.path, self.poll = path + ".lock", poll

    def __enter__(self):
        while True:
            try:
                fd = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            except FileExistsError:
                time.sleep(self.poll)
                continue
            os.write(fd, str(os.getpid()).encode())
            os.close(fd)
            return self

    def __exit__(self, *exc):
        os.unlink(self.path)


def documents(shard_id, count=40):
    rng = random.Random(shard_id)
    scale = 40 if shard_id % 8 == 5 else 1
    return [" ".join(str(rng.randrange(100)) for _ in range(rng.randrange(100, 200) * scale)) for _ in range(count)]


def encode(text, vocab, length):
    time.sleep(len(text) * 3e-5)
    ids = [int(w) % vocab for w in text.split()][:length]
    return torch.tensor(ids)


def build_shard(path, shard_id, vocab, length):
    with CacheLock(path):
        if os.path.exists(path):
            return
        rows = [encode(doc, vocab, length) for doc in documents(shard_id)]
        tmp = f"{path}.{os.getpid()}"
        torch.save(torch.stack(rows), tmp)
        os.replace(tmp, path)


class ShardCache:
    def __init__(self, root, vocab=100, length=24, patience=12.0):
        self.root, self.vocab, self.length, self.patience = root, vocab, length, patience
        self.ctx = mp.get_context("spawn")

    def load(self, shard_id):
        path = os.path.join(self.root, f"shard-{shard_id:05d}.pt")
        if not os.path.exists(path):
            args = (path, shard_id, self.vocab, self.length)
            builder = self.ctx.Process(target=build_shard, args=args)
            builder.start()
            builder.join(self.patience)
            if builder.is_alive():
                print(f"shard {shard_id}: builder too slow, building in place", flush=True)
                builder.terminate()
                builder.join()
                build_shard(*args)
        return torch.load(path)
