import os
import struct
import sys

import numpy as np

root = sys.argv[1]
os.makedirs(root, exist_ok=True)
for t in range(18):
    rng = np.random.default_rng(t)
    frames = rng.standard_normal((120, 4, 16, 16)).astype(np.float16)
    with open(os.path.join(root, f"trace{t:02d}.iq"), "wb") as f:
        f.write(struct.pack("<4sI", b"IQ16", frames.shape[0]))
        f.write(frames.tobytes() if t != 14 else frames.tobytes()[:-1300])
