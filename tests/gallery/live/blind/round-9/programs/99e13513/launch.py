"""Start one worker per slot on this machine and wait for them."""
import argparse
import os
import signal
import subprocess
import sys
import time


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--nproc", type=int, default=2)
    p.add_argument("--stagger", type=float, default=0.0, help="seconds between two starts")
    p.add_argument("--addr", default="127.0.0.1")
    p.add_argument("script")
    p.add_argument("rest", nargs=argparse.REMAINDER)
    return p.parse_args()


def main():
    args = parse_args()
    procs = []
    for i in range(args.nproc):
        env = dict(os.environ)
        env.update(
            JOB_PROCID=str(i),
            JOB_NTASKS=str(args.nproc),
            JOB_LOCALID=str(i),
            JOB_HEAD_ADDR=args.addr,
        )
        env.setdefault("OMP_NUM_THREADS", "1")
        procs.append(subprocess.Popen([sys.executable, "-u", args.script, *args.rest], env=env))
        print(f"[launch] task {i} pid {procs[-1].pid}", flush=True)
        if i + 1 < args.nproc:
            time.sleep(args.stagger)

    def stop(*_):
        for p in procs:
            if p.poll() is None:
                p.terminate()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)

    while True:
        codes = [p.poll() for p in procs]
        if any(c not in (None, 0) for c in codes):
            stop()
            return 1
        if all(c == 0 for c in codes):
            return 0
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
