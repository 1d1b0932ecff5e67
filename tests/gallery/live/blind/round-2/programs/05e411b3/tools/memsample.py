"""Consistent snapshots of a process's memory map; the process is frozen while its maps are read."""
import argparse
import json
import os
import signal
import time

p = argparse.ArgumentParser()
p.add_argument("--pid", type=int, required=True)
p.add_argument("--out", required=True)
p.add_argument("--interval", type=float, default=1.0)
p.add_argument("--full-every", type=int, default=5)
args = p.parse_args()


def read_maps(full):
    regions, name = {}, None
    with open(f"/proc/{args.pid}/smaps") as f:
        for line in f:
            head = line.split()
            if "-" in head[0] and not head[0].endswith(":"):
                name = head[5] if len(head) > 5 else "[anon]"
                if full:
                    time.sleep(0.03)
            elif head[0] == "Pss:":
                regions[name] = regions.get(name, 0) + int(head[1])
    return regions


n = 0
with open(args.out, "a") as out:
    while os.path.exists(f"/proc/{args.pid}"):
        n += 1
        os.kill(args.pid, signal.SIGSTOP)
        regions = read_maps(full=n % args.full_every == 0)
        os.kill(args.pid, signal.SIGCONT)
        top = sorted(regions.items(), key=lambda kv: -kv[1])[:20]
        out.write(json.dumps({"t": time.time(), "total_kib": sum(regions.values()), "top": top}) + "\n")
        out.flush()
        print(f"sample {n}: {sum(regions.values()) >> 10} MiB", flush=True)
        time.sleep(args.interval)
