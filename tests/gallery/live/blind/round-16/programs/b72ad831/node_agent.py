"""Delivers the soft time limit of the allocation to the training processes."""
import argparse
import os
import signal
import time


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--run-dir", required=True)
    p.add_argument("--soft-limit", type=float, required=True)
    p.add_argument("pids", type=int, nargs="+")
    args = p.parse_args()
    marker = os.path.join(args.run_dir, "started")
    while not os.path.exists(marker):
        time.sleep(0.5)
    time.sleep(args.soft_limit)
    for pid in args.pids:
        try:
            os.kill(pid, signal.SIGTERM)
            print(f"node agent: soft limit, notified {pid}", flush=True)
        except ProcessLookupError:
            pass
        time.sleep(1.0)


if __name__ == "__main__":
    main()
