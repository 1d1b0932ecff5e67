import argparse
import os
import socket
import subprocess
import sys


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--nproc", type=int, default=2)
    p.add_argument("cmd", nargs=argparse.REMAINDER)
    args = p.parse_args()
    cmd = [c for c in args.cmd if c != "--"]
    env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), WORLD_SIZE=str(args.nproc))
    procs = []
    for r in range(args.nproc):
        procs.append(subprocess.Popen([sys.executable, "-u", *cmd], env=dict(env, RANK=str(r), LOCAL_RANK=str(r))))
    code = 0
    for pr in procs:
        code = pr.wait() or code
    sys.exit(code)


if __name__ == "__main__":
    main()
