import argparse
import os
import socket
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--nproc", type=int, default=2)
parser.add_argument("script")
parser.add_argument("rest", nargs=argparse.REMAINDER)
opts = parser.parse_args()

with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]

procs = []
for rank in range(opts.nproc):
    env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(opts.nproc),
               MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1")
    procs.append(subprocess.Popen([sys.executable, "-u", opts.script] + opts.rest, env=env))

codes = [p.wait() for p in procs]
sys.exit(max(abs(c) for c in codes))
