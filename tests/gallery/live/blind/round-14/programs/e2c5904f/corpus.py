import gzip
import json
import os
import random


def build(root, shards=3, docs=260, seed=3):
    """Writes the small demo corpus, one gzip file of JSON lines per shard."""
    os.makedirs(root, exist_ok=True)
    rng = random.Random(seed)
    for s in range(shards):
        with gzip.open(os.path.join(root, f"part-{s:03d}.jsonl.gz"), "wt") as f:
            for d in range(docs):
                text = [rng.randrange(1, 400) for _ in range(rng.randrange(60, 120))]
                row = {"id": f"{s}-{d}", "tokens": text}
                if s == 2 and d == 151:
                    row = {"id": f"{s}-{d}", "error": "fetch failed"}
                f.write(json.dumps(row) + "\n")


def stream(root, shard, batch, length):
    path = os.path.join(root, f"part-{shard:03d}.jsonl.gz")
    buf, rows = [], []
    while True:
        with gzip.open(path, "rt") as f:
            for line in f:
                buf += json.loads(line)["tokens"]
                while len(buf) > length:
                    rows.append(buf[:length])
                    buf = buf[length:]
                    if len(rows) == batch:
                        yield rows
                        rows = []
