import argparse
import logging
import os
import socket
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from trainer import Trainer


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(rank, args, master_port, gen_port):
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s rank{rank} %(message)s")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{master_port}", rank=rank, world_size=args.world_size)
    Trainer(args, rank, gen_port).fit()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--world-size", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--groups-per-step", type=int, default=6)
    parser.add_argument("--update-every", type=int, default=10)
    parser.add_argument("--eval-every", type=int, default=60)
    parser.add_argument("--eval-size", type=int, default=6000)
    args = parser.parse_args()

    port_file = os.path.join(tempfile.mkdtemp(prefix="gen-"), "port")
    here = os.path.dirname(os.path.abspath(__file__))
    server = subprocess.Popen([sys.executable, os.path.join(here, "genserver.py"), "--port-file", port_file])
    while not os.path.exists(port_file) or not open(port_file).read():
        time.sleep(0.1)
    try:
        mp.spawn(run, args=(args, free_port(), int(open(port_file).read())), nprocs=args.world_size)
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
