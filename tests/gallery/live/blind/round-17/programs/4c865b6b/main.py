import argparse
import socket
import tempfile

import torch.multiprocessing as mp

from shardserver import serve
from train_tp import train


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tp", type=int, default=2)
    parser.add_argument("--dp", type=int, default=2)
    parser.add_argument("--steps", type=int, default=200000)
    args = parser.parse_args()
    parent, child = mp.Pipe()
    server = mp.get_context("fork").Process(target=serve, args=(child,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{parent.recv()}"
    mp.spawn(train, args=(args, free_port(), url, tempfile.mkdtemp(prefix="tp-")), nprocs=args.tp * args.dp)


if __name__ == "__main__":
    main()
