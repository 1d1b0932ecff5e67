import argparse
import multiprocessing as mp
import os
import tempfile

import torch.distributed as dist

from local_sgd import worker_main
from shard_stream import write_shards


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--shards", type=int, default=12)
    parser.add_argument("--sync-every", type=int, default=8)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        folder = os.path.join(tmp, "train")
        os.makedirs(folder)
        write_shards(folder, args.shards)
        store = dist.TCPStore("127.0.0.1", 0, args.workers + 1, is_master=True, wait_for_workers=False)
        ctx = mp.get_context("spawn")
        procs = []
        for rank in range(args.workers):
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(args.workers))
            p = ctx.Process(target=worker_main, name=f"worker-{rank}",
                            args=(rank, args.workers, store.port, folder, args.sync_every))
            p.start()
            procs.append(p)
        for p in procs:
            p.join()


if __name__ == "__main__":
    main()
