import argparse
import os
import subprocess
import sys
import socket


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--nproc", type=int, default=2)
    p.add_argument("script")
    p.add_argument("rest", nargs=argparse.REMAINDER)
    a = p.parse_args()
    port = str(free_port())
    procs = []
    for r in range(a.nproc):
        env = dict(os.environ, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE=str(a.nproc),
                   MASTER_ADDR="127.0.0.1", MASTER_PORT=port, OMP_NUM_THREADS="1")
        procs.append(subprocess.Popen([sys.executable, "-u", a.script, *a.rest], env=env))
    codes = [q.wait() for q in procs]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
