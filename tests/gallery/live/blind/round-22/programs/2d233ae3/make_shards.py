"""Write a few tar shards: two warm ones next to the job, the rest in the bucket folder."""
import os
import sys

import numpy as np
import webdataset as wds

root = sys.argv[1]
rng = np.random.default_rng(0)
for sub, count, samples in (("nvme", 2, 640), ("bucket", 8, 160)):
    os.makedirs(os.path.join(root, sub))
    for s in range(count):
        with wds.TarWriter(os.path.join(root, sub, f"pairs-{s:04d}.tar")) as sink:
            for i in range(samples):
                sink.write({"__key__": f"{sub}{s:04d}{i:05d}",
                            "img.npy": rng.standard_normal((3, 12, 12)).astype("float32"),
                            "cap.npy": rng.integers(0, 300, 10)})
