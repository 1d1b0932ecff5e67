"""Holds a lock on each given file until it is ended."""

import fcntl
import os
import sys
import time

held = []
for path in sys.argv[2:]:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    file = open(path, "a")
    fcntl.flock(file, fcntl.LOCK_EX) if sys.argv[1] == "flock" else fcntl.lockf(file, fcntl.LOCK_EX)
    held.append(file)
print("ready", flush=True)
while True:
    time.sleep(60)
