import argparse
import os
import subprocess
import sys

p = argparse.ArgumentParser()
p.add_argument("--gpus", type=int)
p.add_argument("--dist-url")
p.add_argument("--logdir")
a = p.parse_args()
host, port = a.dist_url.split(":")
workers = {}
for r in range(a.gpus):
    env = dict(os.environ, MASTER_ADDR=host, MASTER_PORT=port, RANK=str(r), WORLD_SIZE=str(a.gpus), LOCAL_RANK=str(r))
    f = open(os.path.join(a.logdir, f"gpu{r}.txt"), "w")
    workers[r] = subprocess.Popen([sys.executable, "train_gan.py", "--samples", "samples"], env=env, stdout=f, stderr=f)
codes = {r: w.wait() for r, w in reversed(workers.items())}
print("exit codes", codes)
