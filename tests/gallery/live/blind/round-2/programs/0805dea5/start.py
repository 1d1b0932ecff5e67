import argparse
import os
import random
import subprocess
import sys

p = argparse.ArgumentParser()
p.add_argument("--nproc", type=int, default=2)
p.add_argument("script")
args = p.parse_args()
base = dict(os.environ, WORLD_SIZE=str(args.nproc), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(random.randint(20000, 40000)))
ps = [subprocess.Popen([sys.executable, "-u", args.script], env=dict(base, RANK=str(r), LOCAL_RANK=str(r))) for r in range(args.nproc)]
for q in ps:
    q.wait()
