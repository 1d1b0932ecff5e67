"""Starts one process per rank on this machine and waits for them."""
import argparse
import os
import socket
import subprocess
import sys


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-n", type=int, default=2)
    p.add_argument("command", nargs=argparse.REMAINDER)
    args = p.parse_args()
    command = [c for c in args.command if c != "--"]
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(args.n))
    workers = [subprocess.Popen([sys.executable, *command], env={**env, "RANK": str(r), "LOCAL_RANK": str(r)})
               for r in range(args.n)]
    codes = [w.wait() for w in workers]
    sys.exit(max(abs(c) for c in codes))


if __name__ == "__main__":
    main()
