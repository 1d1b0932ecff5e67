import os
import random
import subprocess
import sys

WORLD = 2
base = random.randrange(20000, 39000)
env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(base), WORLD_SIZE=str(WORLD),
           REMOTE=f"http://127.0.0.1:{base + 1}")
remote = subprocess.Popen([sys.executable, "remote/bucket.py", str(base + 1)], env=env, stderr=subprocess.DEVNULL)
ranks = [subprocess.Popen([sys.executable, "-u", "train.py"], env=dict(env, RANK=str(r), LOCAL_RANK=str(r)))
         for r in range(WORLD)]
try:
    sys.exit(max(p.wait() for p in ranks))
finally:
    remote.terminate()
