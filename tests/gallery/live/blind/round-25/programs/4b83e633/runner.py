import argparse
import multiprocessing as mp
import socket
import tempfile

from segment_train import run_worker


def pick_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", type=int, default=3)
    args = parser.parse_args()
    ctx = mp.get_context("spawn")
    port, outdir = pick_port(), tempfile.mkdtemp(prefix="segm_")
    workers = [
        ctx.Process(target=run_worker, args=(rank, args.world, port, outdir), name=f"trainer-{rank}")
        for rank in range(args.world)
    ]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    print("exit codes", [w.exitcode for w in workers], flush=True)


if __name__ == "__main__":
    main()
