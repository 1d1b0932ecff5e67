import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

root = sys.argv[1]
rng = np.random.default_rng(0)
for shard in range(24):
    os.makedirs(os.path.join(root, f"worker_{shard % 4}"), exist_ok=True)
    table = pa.table({
        "latent": [rng.standard_normal(128).astype("float32").tobytes() for _ in range(64)],
        "caption": [f"clip {shard}-{i}" for i in range(64)],
    })
    pq.write_table(table, os.path.join(root, f"worker_{shard % 4}", f"data_{shard:03d}.parquet"))
