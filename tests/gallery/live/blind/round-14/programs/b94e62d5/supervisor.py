import argparse
import os
import signal
import socket
import time

import torch.multiprocessing as mp

from worker import run


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--nproc", type=int, default=2)
    p.add_argument("--snapshot-secs", type=float, default=5)
    p.add_argument("--workdir", default="/tmp/snap_%d" % os.getpid())
    args = p.parse_args()
    os.makedirs(args.workdir, exist_ok=True)
    ctx = mp.get_context("spawn")
    started = ctx.Barrier(args.nproc + 1)
    port = free_port()
    requests = [ctx.Event() for _ in range(args.nproc)]
    procs = []
    for r in range(args.nproc):
        pr = ctx.Process(target=run, args=(r, args.nproc, port, requests[r], started, args.workdir), name=f"rank{r}")
        pr.start()
        procs.append(pr)
    started.wait()
    # same contract as on the cluster: the batch script only knows the first task
    while all(pr.is_alive() for pr in procs):
        time.sleep(args.snapshot_secs)
        os.kill(procs[0].pid, signal.SIGUSR1)
    for pr in procs:
        pr.join()


if __name__ == "__main__":
    main()
