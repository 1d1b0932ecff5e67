import argparse
import multiprocessing as mp
import os
import socket
import tempfile


def entry(rank, world, port, out):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    from trainer import Trainer
    Trainer(out).fit()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--ranks", type=int, default=2)
    args = ap.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    out = tempfile.mkdtemp(prefix="run-")
    ctx = mp.get_context("spawn")
    procs = [ctx.Process(target=entry, args=(r, args.ranks, port, out), name=f"rank{r}")
             for r in range(args.ranks)]
    for p in procs:
        p.start()
    for p in procs:
        p.join()


if __name__ == "__main__":
    main()
