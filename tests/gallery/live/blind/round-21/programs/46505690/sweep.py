import argparse
import multiprocessing as mp
import os
import socket
import tempfile


def start(rank, world_size, *rest):
    from objective import run_worker
    run_worker(rank, world_size, *rest)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--steps-per-trial", type=int, default=50)
    args = parser.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(args.workers),
                      LOCAL_WORLD_SIZE=str(args.workers))
    ctx = mp.get_context("spawn")
    procs = []
    with tempfile.TemporaryDirectory() as work_dir:
        for rank in range(args.workers):
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
            p = ctx.Process(target=start, args=(rank, args.workers, work_dir, args.trials, args.steps_per_trial))
            p.start()
            procs.append(p)
        for p in procs:
            p.join()


if __name__ == "__main__":
    main()
