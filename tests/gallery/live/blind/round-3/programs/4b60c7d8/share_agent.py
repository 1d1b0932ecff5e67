"""Makes room for interactive reservations: batch processes pause and go on afterwards."""
import argparse
import json
import os
import signal
import time


def read_pids(path):
    with open(path) as f:
        return [int(x) for x in f.read().split()]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--pids", required=True)
    p.add_argument("--calendar", required=True)
    p.add_argument("--log", required=True)
    a = p.parse_args()
    while not (os.path.exists(a.log) and os.path.getsize(a.log)):
        time.sleep(1)  # reservations are counted from the first progress line
    t0 = time.time()
    for entry in json.load(open(a.calendar)):
        time.sleep(max(0, t0 + entry["after_s"] - time.time()))
        pids = read_pids(a.pids)
        print(f"reservation of {entry['owner']}: pausing {len(pids)} processes for {entry['length_s']} s", flush=True)
        for pid in reversed(pids):
            os.kill(pid, signal.SIGSTOP)
        time.sleep(entry["length_s"])
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        print("resumed", flush=True)


if __name__ == "__main__":
    main()
