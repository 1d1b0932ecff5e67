import argparse
import glob
import os
import signal
import time


def read_beat(path):
    try:
        with open(path) as f:
            pid, phase = f.read().split()
        return int(pid), phase, os.stat(path).st_mtime
    except (ValueError, FileNotFoundError):
        return None, None, None


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--run-dir", required=True)
    ap.add_argument("--stale-after", type=float, default=60.0)
    ap.add_argument("--poll", type=float, default=1.0)
    args = ap.parse_args()
    done = set()
    while True:
        for path in glob.glob(os.path.join(args.run_dir, "worker-*.beat")):
            pid, phase, mtime = read_beat(path)
            if pid is None or pid in done or phase == "sync":
                continue
            if time.time() - mtime > args.stale_after:
                os.kill(pid, signal.SIGKILL)
                done.add(pid)
        time.sleep(args.poll)


if __name__ == "__main__":
    main()
