import json
import os
import random

import numpy as np

os.makedirs("data/optimized", exist_ok=True)
rng = random.Random(17)
index = []
for c in range(14):
    n = rng.randint(900, 1400)
    arr = np.random.RandomState(c).randint(0, 1000, size=n * 11).astype(np.int32)
    arr.tofile(f"data/optimized/chunk-{c:03d}.bin")
    index.append({"file": f"chunk-{c:03d}.bin", "tokens": int(arr.size)})
json.dump({"chunks": index}, open("data/optimized/index.json", "w"))
print(f"optimized {len(index)} chunks, {sum(i['tokens'] for i in index)} tokens")
