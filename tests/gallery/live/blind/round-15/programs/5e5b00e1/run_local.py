"""Starts one process per rank on this machine and waits for all of them."""
import argparse
import os
import socket
import subprocess
import sys


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--nproc", type=int, default=2)
    p.add_argument("rest", nargs=argparse.REMAINDER)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    rest = [a for a in args.rest if a != "--"]
    procs = []
    for r in range(args.nproc):
        env = dict(os.environ, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE=str(args.nproc), MASTER_ADDR="127.0.0.1",
                   MASTER_PORT=str(port), OMP_NUM_THREADS="1")
        procs.append(subprocess.Popen([sys.executable, "-u", "policy_train.py", *rest], env=env))
    sys.exit(max(abs(p.wait()) for p in procs))


if __name__ == "__main__":
    main()
