"""Enforces the memory share per process on the shared node."""
import argparse
import os
import signal
import time


def rss_mib(pid):
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    return 0.0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--workers", required=True)
    p.add_argument("--limit-mib", type=float, default=4096)
    p.add_argument("--every", type=float, default=3)
    a = p.parse_args()
    done = set()
    while True:
        for line in open(a.workers):
            rank, pid = map(int, line.split())
            if pid in done:
                continue
            try:
                used = rss_mib(pid)
            except OSError:
                done.add(pid)
                continue
            if used > a.limit_mib:
                print(f"{time.strftime('%H:%M:%S')} worker {rank} pid {pid} uses {used:.0f} MiB > {a.limit_mib:.0f}, ending it",
                      flush=True)
                os.kill(pid, signal.SIGKILL)
                done.add(pid)
        time.sleep(a.every)


if __name__ == "__main__":
    main()
