import argparse
import socket
import tempfile

import torch.multiprocessing as mp

from loop import run

if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--dp", type=int, default=2)
    p.add_argument("--tp", type=int, default=2)
    p.add_argument("--batch", type=int, default=48)
    p.add_argument("--steps", type=int, default=200000)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(run, args=(args, port, tempfile.mkdtemp(prefix="ranker-")), nprocs=args.dp * args.tp)
