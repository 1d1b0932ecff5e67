import argparse
import os
import random
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

from gossip import ControlListener, RingGossiper


def local_batch(gen, shift):
    x = torch.randn(32, 24, generator=gen) + shift
    y = (x[:, :8].sum(dim=1) > x[:, 8:16].sum(dim=1)).long()
    return x, y


def local_report(model, rank, round_id):
    gen = torch.Generator().manual_seed(99)
    hits = 0
    with torch.no_grad():
        for _ in range(10):
            x, y = local_batch(gen, 0.0)
            hits += (model(x).argmax(dim=1) == y).sum().item()
            time.sleep(0.2)
    print(f"[peer {rank}] round {round_id} held-out accuracy {hits / 320:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--report-every", type=int, default=240)
    args = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(hours=12))
    rank, world = dist.get_rank(), dist.get_world_size()
    data_group = dist.new_group(list(range(world)))
    control_group = dist.new_group(list(range(world)))

    torch.manual_seed(3 + rank)
    jitter = random.Random(rank)
    gen = torch.Generator().manual_seed(rank)
    model = nn.Sequential(nn.Linear(24, 48), nn.Tanh(), nn.Linear(48, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    gossiper = RingGossiper(model.parameters(), data_group)
    listener = None
    if rank != 0:
        listener = ControlListener(control_group)
        listener.start()

    for round_id in range(args.rounds):
        x, y = local_batch(gen, 0.1 * rank)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        if listener is not None and listener.stop_requested.is_set():
            break
        scale = listener.lr_scale if listener is not None else 1.0
        for group in optimizer.param_groups:
            group["lr"] = 0.05 * scale
        optimizer.step()
        time.sleep(jitter.choice([0.05, 0.08, 0.1, 0.3]))
        gossiper.exchange()
        if round_id % 40 == 0:
            print(f"[peer {rank}] round {round_id} loss {loss.item():.4f}", flush=True)
        if rank == 0 and round_id % 500 == 499:
            for peer in range(1, world):
                dist.send(torch.tensor([1.0, 0.98]), dst=peer, group=control_group)
        if (round_id + 60 * rank) % args.report_every == args.report_every - 1:
            local_report(model, rank, round_id)
    os._exit(0)


if __name__ == "__main__":
    main()
