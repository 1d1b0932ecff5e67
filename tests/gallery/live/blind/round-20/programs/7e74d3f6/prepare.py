import argparse
import os

import numpy as np
import webdataset as wds

LAYOUT = {"web": (9, 120), "code": (6, 80), "math": (2, 60)}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", required=True)
    out = p.parse_args().out
    rng = np.random.default_rng(0)
    for name, (shards, docs) in LAYOUT.items():
        os.makedirs(f"{out}/{name}", exist_ok=True)
        for s in range(shards):
            with wds.TarWriter(f"{out}/{name}/{s:05d}.tar") as sink:
                for d in range(docs):
                    tokens = rng.integers(0, 512, size=65, dtype=np.int64)
                    sink.write({"__key__": f"{name}-{s}-{d}", "tokens.npy": tokens})
    print("shards:", {k: v[0] for k, v in LAYOUT.items()}, flush=True)


if __name__ == "__main__":
    main()
