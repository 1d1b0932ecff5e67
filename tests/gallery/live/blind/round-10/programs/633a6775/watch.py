"""Waits for finished checkpoints and reports their size."""
import os
import sys
import time

root, seen = sys.argv[1], set()
while os.getppid() != 1:
    names = sorted(d for d in os.listdir(root) if d.startswith("step")) if os.path.isdir(root) else []
    for name in names:
        path = os.path.join(root, name)
        if name not in seen and os.path.exists(os.path.join(path, ".metadata")):
            seen.add(name)
            size = sum(os.path.getsize(os.path.join(path, f)) for f in os.listdir(path))
            print(f"[watch] {name}: {size / 1e6:.1f} MB", flush=True)
    time.sleep(1.0)
