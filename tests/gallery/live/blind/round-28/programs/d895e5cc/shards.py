import json
import os
import random
import time

import torch


def raw_records(shard, n=160):
    """Lines as they come from the crawl export."""
    rng = random.Random(shard)
    for i in range(n):
        rec = {"id": f"{shard}-{i}", "text": " ".join(f"t{rng.randrange(250)}" for _ in range(rng.randint(8, 20)))}
        if shard == 2 and i == 121:
            rec = {"id": f"{shard}-{i}", "error": "timeout", "status": 504}
        yield json.dumps(rec)


def tokenize(line, max_len):
    text = json.loads(line)["text"]
    ids = [int(w[1:]) + 1 for w in text.split()][:max_len]
    time.sleep(0.01)
    return ids + [0] * (max_len - len(ids))


def build(shard, path, max_len):
    rows = [tokenize(line, max_len) for line in raw_records(shard)]
    torch.save(torch.tensor(rows), path + ".part")
    os.replace(path + ".part", path)


def wait_for(path, poll_s):
    while not os.path.exists(path):
        time.sleep(poll_s)


def get_shard(shard, rank, max_len=20, poll_s=1.0):
    path = os.path.join(os.environ["SHARD_CACHE"], f"shard{shard:05d}-{max_len}.pt")
    if rank == 0:
        if not os.path.exists(path):
            build(shard, path, max_len)
    else:
        wait_for(path, poll_s)
    return torch.load(path)
