import os
import random

import pyarrow as pa
import pyarrow.parquet as pq

WORDS = "the of and to in is it was for on are as with his they at be this have from or one had by word".split()


def build(root, shards=4, docs=640):
    """Writes shards of documents; as upstream, the last file is kept for validation."""
    rng = random.Random(5)
    os.makedirs(root, exist_ok=True)
    for s in range(shards):
        n = docs if s < shards - 1 else 300
        text = [" ".join(rng.choices(WORDS, k=rng.randint(20, 60))) for _ in range(n)]
        pq.write_table(pa.table({"text": text}), os.path.join(root, f"shard_{s:05d}.parquet"), row_group_size=106)


def list_files(root, split):
    files = sorted(os.path.join(root, f) for f in os.listdir(root) if f.endswith(".parquet"))
    return files[:-1] if split == "train" else files[-1:]
