import json
import os
import random


def ensure_manifest(path, n=1440):
    if os.path.exists(path):
        return
    rnd = random.Random(3)
    tmp = f"{path}.{os.getpid()}"
    with open(tmp, "w") as f:
        for i in range(n):
            dur = rnd.uniform(1.0, 14.0) if i < n - n // 6 else rnd.uniform(0.05, 9.0)
            f.write(json.dumps({"id": f"utt{i:06d}", "duration": round(dur, 2)}) + "\n")
    os.replace(tmp, path)


def load(path):
    with open(path) as f:
        return [json.loads(line) for line in f]
