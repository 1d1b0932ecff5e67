import argparse
import logging
import os
import random
import socket
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from client import Silo, SiloModel

RECORDS = {0: 4000, 1: 3600, 2: 4400, 3: 420}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def select(round_idx, world_size, k):
    rng = random.Random(97 + round_idx)
    return sorted(rng.sample(range(world_size), k))


@torch.no_grad()
def average(model, group, size):
    for p in model.parameters():
        dist.all_reduce(p.data, group=group)
        p.data.div_(size)


def federated_rounds(rank, args, log):
    torch.manual_seed(0)
    model = SiloModel()
    silo = Silo(rank, RECORDS[rank])
    torch.manual_seed(rank)
    for r in range(args.rounds):
        members = select(r, args.clients, args.clients_per_round)
        group = dist.new_group(members, timeout=timedelta(minutes=40))
        if rank in members:
            loss = silo.local_epoch(model, 0.1, args.local_steps, args.batch_size, 0.15)
            average(model, group, len(members))
            log.info("round %d members %s loss %.4f eps %.2f", r, members, loss, silo.spent)
            dist.destroy_process_group(group)
        if silo.exhausted:
            log.info("privacy budget used up after round %d", r)
            break
    return model


def run_client(rank, port, args, out_dir):
    logging.basicConfig(
        level=logging.INFO, format=f"%(asctime)s [client {rank}] %(message)s", force=True
    )
    log = logging.getLogger("fed")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group(
        "gloo", rank=rank, world_size=args.clients, timeout=timedelta(minutes=40)
    )
    model = federated_rounds(rank, args, log)
    torch.save(model.state_dict(), os.path.join(out_dir, f"client_{rank}.pt"))
    log.info("finished")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--clients", type=int, default=4)
    p.add_argument("--clients-per-round", type=int, default=3)
    p.add_argument("--rounds", type=int, default=500)
    p.add_argument("--local-steps", type=int, default=12)
    p.add_argument("--batch-size", type=int, default=32)
    args = p.parse_args()

    ctx = mp.get_context("spawn")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="fedsim_") as out_dir:
        procs = [
            ctx.Process(target=run_client, args=(r, port, args, out_dir), name=f"client-{r}")
            for r in range(args.clients)
        ]
        for p_ in procs:
            p_.start()
        for p_ in procs:
            p_.join()


if __name__ == "__main__":
    main()
