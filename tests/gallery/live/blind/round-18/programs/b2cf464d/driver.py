import argparse
import json
import multiprocessing as mp
import os
import socket

from config import Config
import worker


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def collect(conns):
    return [conn.recv() for conn in conns]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--workers", type=int, default=3)
    ap.add_argument("--run-dir", required=True)
    args = ap.parse_args()

    cfg = Config()
    ctx = mp.get_context("spawn")
    procs, conns = [], []
    for rank in range(args.workers):
        ours, theirs = ctx.Pipe()
        p = ctx.Process(target=worker.main, args=(rank, args.workers, cfg, theirs), name=f"worker-{rank}")
        p.start()
        theirs.close()
        procs.append(p)
        conns.append(ours)
    for hello in collect(conns):
        print(f"worker {hello['rank']} up, pid {hello['pid']}", flush=True)

    with open(os.path.join(args.run_dir, "stages.jsonl"), "w") as log:
        for stage in cfg.stages:
            port = free_port()
            print(f"stage {stage.name}: seq {stage.seq_len}, {stage.steps} steps", flush=True)
            for conn in conns:
                conn.send((stage, port))
            for report in collect(conns):
                log.write(json.dumps(report) + "\n")
                log.flush()
    for conn in conns:
        conn.send(None)
    for p in procs:
        p.join()


if __name__ == "__main__":
    main()
