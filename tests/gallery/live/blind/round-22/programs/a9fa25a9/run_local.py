import argparse
import multiprocessing as mp
from datetime import timedelta

import torch.distributed as dist

from tagger_worker import main as worker_main


def entry(rank, world, port):
    store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=timedelta(hours=1))
    worker_main(rank, world, store)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--ranks", type=int, default=2)
    args = ap.parse_args()
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False,
                          timeout=timedelta(hours=1))
    ctx = mp.get_context("spawn")
    procs = [ctx.Process(target=entry, args=(r, args.ranks, store.port), name=f"rank{r}")
             for r in range(args.ranks)]
    for p in procs:
        p.start()
    for p in procs:
        p.join()
    print("all ranks finished", [p.exitcode for p in procs], flush=True)
