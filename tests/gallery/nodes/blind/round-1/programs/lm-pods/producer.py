"""Writes the next part of the stream every now and then."""
import os
import random
import time

import torch

os.makedirs("stream", exist_ok=True)
for part in range(5000):
    torch.save(torch.randint(300, (random.randint(60, 120), 65)), "stream/next.tmp")
    os.rename("stream/next.tmp", f"stream/{part:04d}.pt")
    print("part", part, flush=True)
    time.sleep(random.uniform(0.05, 0.15))
