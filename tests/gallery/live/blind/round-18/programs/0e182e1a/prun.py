"""Minimal mpirun stand-in for boxes without MPI: prun.py -n N [-x VAR] -- CMD ..."""
import argparse
import os
import socket
import subprocess
import sys
import threading


def pump(rank, stream):
    for line in stream:
        sys.stdout.write(f"[1,{rank}] {line}")
        sys.stdout.flush()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("-n", type=int, required=True)
    ap.add_argument("-x", action="append", default=[])
    ap.add_argument("cmd", nargs=argparse.REMAINDER)
    args = ap.parse_args()
    cmd = args.cmd[1:] if args.cmd[0] == "--" else args.cmd
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    procs = []
    for rank in range(args.n):
        env = dict(os.environ, OMPI_COMM_WORLD_RANK=str(rank), OMPI_COMM_WORLD_SIZE=str(args.n),
                   OMPI_COMM_WORLD_LOCAL_RANK=str(rank), RANK=str(rank), WORLD_SIZE=str(args.n), LOCAL_RANK=str(rank),
                   MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
        p = subprocess.Popen(cmd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        threading.Thread(target=pump, args=(rank, p.stdout), daemon=True).start()
        procs.append(p)
    sys.exit(max(abs(p.wait()) for p in procs))


if __name__ == "__main__":
    main()
