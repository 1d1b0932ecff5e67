import argparse
import multiprocessing as mp
import os
import socket
import time
from datetime import timedelta

import torch
import torch.distributed as dist

from client import FederatedClient, build_net
from exchange import ModelExchange


def average(updates):
    total = sum(n for _, n in updates)
    merged = {}
    for name, value in updates[0][0].items():
        if value.is_floating_point():
            merged[name] = sum(state[name] * (n / total) for state, n in updates)
        else:
            merged[name] = value
    return merged


def held_out_accuracy(net):
    net.eval()
    gen = torch.Generator().manual_seed(4242)
    x = torch.randn(512, 10, generator=gen)
    with torch.no_grad():
        return (net(x).argmax(dim=1) == x[:, :3].argmax(dim=1)).float().mean().item()


def serve(exchange, clients, rounds):
    net = build_net()
    exchange.publish_global(0, net.state_dict())
    for round_id in range(rounds):
        start = time.time()
        updates = [exchange.collect_update(round_id, c) for c in clients]
        net.load_state_dict(average(updates))
        print(f"round {round_id} accuracy {held_out_accuracy(net):.3f} "
              f"samples {sum(n for _, n in updates)} in {time.time() - start:.1f} s", flush=True)
        exchange.publish_global(round_id + 1, net.state_dict())


def participant(rank, world, port, rounds):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", timeout=timedelta(hours=3))
    torch.manual_seed(rank)
    exchange = ModelExchange()
    dist.barrier()
    if rank == 0:
        serve(exchange, range(1, world), rounds)
    else:
        FederatedClient(rank, exchange, rounds).run()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=50)
    args = parser.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ctx = mp.get_context("spawn")
    world = args.clients + 1
    procs = [
        ctx.Process(target=participant, args=(r, world, port, args.rounds), name="server" if r == 0 else f"client{r}")
        for r in range(world)
    ]
    for p in procs:
        p.start()
    for p in procs:
        p.join()


if __name__ == "__main__":
    main()
