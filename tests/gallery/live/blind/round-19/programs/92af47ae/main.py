import argparse
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from dispatch import CentralLoader
from pipes import eval_loader, train_loader


def build():
    return nn.Sequential(
        nn.Unflatten(1, (1, 256)),
        nn.Conv1d(1, 32, 9, 2, 4), nn.ReLU(), nn.Conv1d(32, 64, 9, 2, 4), nn.ReLU(),
        nn.AdaptiveAvgPool1d(8), nn.Flatten(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 1),
    )


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    total = torch.zeros(2)
    for x, f in loader:
        err = (model(x).squeeze(1) - f).abs()
        total += torch.tensor([err.sum().item(), float(len(f))])
    dist.all_reduce(total)
    model.train()
    return (total[0] / total[1]).item()


def worker(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=args.world_size)
    torch.manual_seed(0)
    model = DDP(build())
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    loader, sampler = train_loader(rank, args.world_size, 32)
    val = CentralLoader(eval_loader(16))
    step, epoch, t0 = 0, 0, time.time()
    while step < args.steps:
        sampler.set_epoch(epoch)
        for x, f in loader:
            loss = nn.functional.smooth_l1_loss(model(x).squeeze(1), f)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if rank == 0 and step % 25 == 0:
                print(f"step {step} loss {loss.item():.4f} {(time.time() - t0) / step * 1e3:.0f} ms/step", flush=True)
            if step % args.eval_every == 0:
                mae = evaluate(model.module, val)
                if rank == 0:
                    print(f"eval step {step} mae {mae:.4f}", flush=True)
        epoch += 1
    dist.destroy_process_group()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--world-size", type=int, default=2)
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--eval-every", type=int, default=200)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(args, port), nprocs=args.world_size)


if __name__ == "__main__":
    main()
