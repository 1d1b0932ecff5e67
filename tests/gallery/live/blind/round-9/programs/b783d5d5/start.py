"""Local job starter: one process per worker, restarts nothing, forwards signals."""
import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("command", nargs=argparse.REMAINDER)
    args = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="localsgd-") as out:
        base = dict(
            os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()),
            WORLD_SIZE=str(args.workers), OMP_NUM_THREADS="1", RUN_DIR=out,
        )
        procs = [
            subprocess.Popen([sys.executable, "-u", *args.command], env=dict(base, RANK=str(r), LOCAL_RANK=str(r)))
            for r in range(args.workers)
        ]

        def forward(sig, _):
            for q in procs:
                if q.poll() is None:
                    q.send_signal(sig)

        signal.signal(signal.SIGTERM, forward)
        signal.signal(signal.SIGINT, forward)
        return max(abs(q.wait()) for q in procs)


if __name__ == "__main__":
    sys.exit(main())
