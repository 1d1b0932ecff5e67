from preempt import StopFlag

stop = StopFlag()

import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Tagger(nn.Module):
    def __init__(self, vocab=800, dim=96, hidden=128, tags=17):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, tags)

    def forward(self, x):
        h, _ = self.rnn(self.emb(x))
        return self.out(h)


def sample(gen, n=8, t=24):
    x = torch.randint(0, 800, (n, t), generator=gen)
    y = (x + torch.roll(x, 1, dims=1)) % 17
    return x, y


def save(path, model, opt, step):
    state = {"model": model.module.state_dict(), "opt": opt.state_dict(), "step": step}
    torch.save(state, path + ".tmp")
    os.replace(path + ".tmp", path)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--ckpt-dir", required=True)
    ap.add_argument("--ckpt-freq", type=int, default=400)
    ap.add_argument("--max-steps", type=int, default=500000)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(Tagger())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    crit = nn.CrossEntropyLoss()
    gen = torch.Generator().manual_seed(50 + rank)
    step, t0 = 0, time.time()
    while step < args.max_steps:
        x, y = sample(gen)
        loss = crit(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if rank == 0 and step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f} {(time.time() - t0) / 25 * 1e3:.0f} ms/step", flush=True)
            t0 = time.time()
        if rank == 0 and step % args.ckpt_freq == 0:
            save(os.path.join(args.ckpt_dir, f"checkpoint_{step:08d}.pt"), model, opt, step)
        if stop.requested:
            print(f"[rank {rank}] stop requested, saving at step {step}", flush=True)
            break
    dist.barrier()
    if rank == 0:
        save(os.path.join(args.ckpt_dir, "checkpoint_last.pt"), model, opt, step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
