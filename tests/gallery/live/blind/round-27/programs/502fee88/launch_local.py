import argparse
import multiprocessing as mp
import os
import socket
import tempfile

from base_train import main


def entry(rank, world_size, port, run_dir):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank),
                      LOCAL_RANK=str(rank), WORLD_SIZE=str(world_size))
    main(run_dir)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    args = parser.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    run_dir = tempfile.mkdtemp(prefix="base-run-")
    context = mp.get_context("spawn")
    procs = [context.Process(target=entry, args=(r, args.ranks, port, run_dir)) for r in range(args.ranks)]
    for p in procs:
        p.start()
    for p in procs:
        p.join()
