import argparse
import io
import json
import os
import tarfile

import numpy as np

p = argparse.ArgumentParser()
p.add_argument("--out", default="bucket")
p.add_argument("--shards", type=int, default=12)
args = p.parse_args()
os.makedirs(args.out, exist_ok=True)
rng = np.random.default_rng(0)
index = {}
for s in range(args.shards):
    name = f"train-{s:06d}.tar"
    buf = io.BytesIO()
    with tarfile.open(fileobj=buf, mode="w") as t:
        for k in range(40):
            arr = io.BytesIO()
            np.save(arr, rng.standard_normal(64).astype("float32"))
            for ext, data in (("npy", arr.getvalue()), ("cls", str(int(rng.integers(10))).encode())):
                info = tarfile.TarInfo(f"{s:06d}{k:04d}.{ext}")
                info.size = len(data)
                t.addfile(info, io.BytesIO(data))
    blob = buf.getvalue()
    index[name] = len(blob)
    part = blob[: len(blob) * 5 // 8] if s == 9 else blob
    with open(os.path.join(args.out, name), "wb") as f:
        f.write(part)
with open(os.path.join(args.out, "index.json"), "w") as f:
    json.dump(index, f)
print(f"{args.shards} shards, {sum(index.values()) >> 10} KiB")
