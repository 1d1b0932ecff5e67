import argparse
import multiprocessing as mp
import os
import tempfile
import time
from datetime import timedelta

import torch
from torch.distributed import TCPStore
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from exchange import RoundExchange
from readings import stream, write_site_files

HOST = "127.0.0.1"


def trainer(index, args, port, folder):
    torch.set_num_threads(1)
    store = TCPStore(HOST, port, is_master=False, timeout=timedelta(hours=2))
    exchange = RoundExchange(store, index, args.trainers)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 48), torch.nn.SiLU(), torch.nn.Linear(48, 48),
                              torch.nn.SiLU(), torch.nn.Linear(48, 1))
    inner = torch.optim.AdamW(net.parameters(), lr=2e-3)
    anchor = parameters_to_vector(net.parameters()).detach().clone()
    momentum = torch.zeros_like(anchor)
    batches = stream(os.path.join(folder, f"site{index}.csv"), args.batch_size)

    for round_no in range(args.rounds):
        loss_sum = 0.0
        for _ in range(args.local_steps):
            x, y = next(batches)
            time.sleep(0.2)
            loss = torch.nn.functional.mse_loss(net(x), y)
            inner.zero_grad()
            loss.backward()
            inner.step()
            loss_sum += loss.item()
        exchange.publish(round_no, anchor - parameters_to_vector(net.parameters()).detach())
        delta = exchange.average(round_no)
        momentum.mul_(0.9).add_(delta)
        anchor = anchor - 0.7 * (delta + 0.9 * momentum) * 0.3
        vector_to_parameters(anchor.clone(), net.parameters())
        if index == 0:
            print(f"round {round_no} local loss {loss_sum / args.local_steps:.4f} "
                  f"|delta| {delta.norm().item():.4f}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--trainers", type=int, default=4)
    ap.add_argument("--rounds", type=int, default=5000)
    ap.add_argument("--local-steps", type=int, default=8)
    ap.add_argument("--batch-size", type=int, default=6)
    args = ap.parse_args()

    store = TCPStore(HOST, 0, is_master=True, wait_for_workers=False, timeout=timedelta(hours=2))
    with tempfile.TemporaryDirectory() as folder:
        write_site_files(folder, args.trainers)
        ctx = mp.get_context("spawn")
        procs = [ctx.Process(target=trainer, name=f"trainer-{i}", args=(i, args, store.port, folder))
                 for i in range(args.trainers)]
        for p in procs:
            p.start()
        for p in procs:
            p.join()
        failed = [p.name for p in procs if p.exitcode]
    if failed:
        raise SystemExit(f"failed: {failed}")


if __name__ == "__main__":
    main()
