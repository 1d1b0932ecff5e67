import os
import random

import pyarrow as pa
import pyarrow.parquet as pq

WORDS = "and then they went over hill river stone to see light of old town where music played all night long".split()


def ensure_shards(folder, count=5, docs=768, group=64):
    """Writes a small parquet corpus when there is none yet."""
    os.makedirs(folder, exist_ok=True)
    rng = random.Random(1)
    for s in range(count):
        path = os.path.join(folder, f"shard_{s:05d}.parquet")
        text = [" ".join(rng.choice(WORDS) for _ in range(rng.randint(20, 60))) for _ in range(docs)]
        if not os.path.exists(path):
            pq.write_table(pa.table({"text": text}), path, row_group_size=group)


def list_parquet_files(folder):
    return [os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.endswith(".parquet")]
