import argparse

import torch
import torch.distributed as dist
from torch import nn

from client import Client
from server import RoundLog, average_weights


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--local-seconds", type=float, default=10)
    p.add_argument("--bs", type=int, default=32)
    a = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 2))
    client, log = Client(net, rank), RoundLog()
    for r in range(a.rounds):
        loss, n = client.run(a.local_seconds, a.bs)
        average_weights(net, n)
        rows = log.add(loss=round(loss, 4), steps=n)
        if rank == 0:
            print(f"round {r}: {rows}", flush=True)


if __name__ == "__main__":
    main()
