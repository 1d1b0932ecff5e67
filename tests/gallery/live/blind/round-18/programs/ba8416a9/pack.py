import os
import sys

import numpy as np
import webdataset as wds


def main(root, shards=12, per_shard=150):
    os.makedirs(root, exist_ok=True)
    rng = np.random.default_rng(4)
    protos = rng.standard_normal((8, 3, 24, 24))
    for s in range(shards):
        with wds.TarWriter(os.path.join(root, f"q-{s:03d}.tar")) as tar:
            for i in range(per_shard):
                c = int(rng.integers(8))
                img = (0.25 * protos[c] + rng.standard_normal((3, 24, 24))).astype(np.float16)
                tar.write({"__key__": f"{s:03d}{i:05d}", "x.npy": img, "y.cls": c})


if __name__ == "__main__":
    main(sys.argv[1])
