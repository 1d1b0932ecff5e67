import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn

from ckpt.async_writer import AsyncCheckpointWriter


def to_host(state):
    return {k: v.detach().clone().numpy() for k, v in state.items()}


def train(args):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1234)
    model = nn.Sequential(nn.Embedding(256, 64), nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 256))
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    writer = AsyncCheckpointWriter(args.save) if rank == 0 else None
    gen = torch.Generator().manual_seed(rank)
    t0 = time.time()
    for it in range(1, args.train_iters + 1):
        tok = torch.randint(0, 256, (8, 33), generator=gen)
        loss = nn.functional.cross_entropy(model(tok[:, :-1]).flatten(0, 1), tok[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        for prm in model.parameters():
            dist.all_reduce(prm.grad)
            prm.grad /= world
        opt.step()
        time.sleep(0.1)
        if it % 20 == 0 and rank == 0:
            print(f" iteration {it:7d}/{args.train_iters} | elapsed time per iteration (ms): "
                  f"{(time.time() - t0) * 50:.1f} | lm loss: {loss.item():.4E}", flush=True)
            t0 = time.time()
        if it % args.save_interval == 0 and rank == 0:
            print(f"  scheduling async checkpoint at iteration {it}", flush=True)
            writer.schedule(it, {"model": to_host(model.state_dict()), "meta": {"iteration": it}})


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--train-iters", type=int, default=1000)
    p.add_argument("--save-interval", type=int, default=100)
    p.add_argument("--save", default="checkpoints")
    p.add_argument("--lr", type=float, default=1e-3)
    train(p.parse_args())
