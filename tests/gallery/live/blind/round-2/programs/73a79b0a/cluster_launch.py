import argparse
import json
import os
import socket
import subprocess
import sys


def pick_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--config", required=True)
    p.add_argument("script", nargs=argparse.REMAINDER)
    args = p.parse_args()
    with open(args.config) as f:
        cfg = json.load(f)
    script = [a for a in args.script if a != "--"]
    world = sum(n["slots"] for n in cfg["nodes"])
    port = cfg["master_port"] or pick_port()
    procs, rank = [], 0
    for node in cfg["nodes"]:
        if node["state"] != "up":
            continue
        for slot in range(node["slots"]):
            env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(slot),
                       MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), NODE_NAME=node["host"])
            procs.append(subprocess.Popen([sys.executable, "-u", *script], env=env))
            print(f"{node['host']} slot {slot}: pid {procs[-1].pid}", flush=True)
            rank += 1
    sys.exit(max(p.wait() for p in procs))


if __name__ == "__main__":
    main()
