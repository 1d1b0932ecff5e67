import argparse
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from local.averaging import DelayedAverage
from local.background import Heartbeat, Saver

LENGTHS = (20, 24, 28)


class Tagger(nn.Module):
    def __init__(self, vocab=400, d=64, tags=12):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.rnn = nn.LSTM(d, d, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * d, tags)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


def draw(gen, batch, length):
    x = torch.randint(0, 400, (batch, length), generator=gen)
    prev = torch.cat([x.new_zeros(batch, 1), x[:, :-1]], 1)
    return x, (x + prev) % 12


@torch.no_grad()
def evaluate(model, gen, batches=12):
    model.eval()
    hit = n = 0
    for _ in range(batches):
        x, y = draw(gen, 32, 24)
        hit += (model(x).argmax(-1) == y).sum().item()
        n += y.numel()
    model.train()
    return hit / n


def wait_for(store, key, every=0.05):
    while not store.check([key]):
        time.sleep(every)
    return store.get(key).decode()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--sync-every", type=int, default=6)
    p.add_argument("--eval-every", type=int, default=200)
    p.add_argument("--steps", type=int, default=10000000)
    p.add_argument("--batch-size", type=int, default=32)
    args = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    rank, world = dist.get_rank(), dist.get_world_size()
    store = dist.distributed_c10d._get_default_store()
    out = os.environ["RUN_DIR"]

    torch.manual_seed(0)
    model = Tagger()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    average = DelayedAverage(model.parameters(), args.sync_every)
    beat = Heartbeat(out, rank)
    saver = Saver(out) if rank == 0 else None
    gen = torch.Generator().manual_seed(31 + rank)
    held = torch.Generator().manual_seed(7)

    t0 = time.time()
    for step in range(1, args.steps + 1):
        x, y = draw(gen, args.batch_size, LENGTHS[(step + rank) % len(LENGTHS)])
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        average.after_step(step)
        beat.step = step
        if rank == 0 and step % 30 == 0:
            print(f"step {step} loss {loss.item():.4f} {(time.time() - t0) / 30 * 1e3:.0f} ms", flush=True)
            t0 = time.time()
        if step % args.eval_every == 0:
            key = f"eval/{step}"
            if rank == 0:
                acc = evaluate(model, held)
                saver.submit(step, model)
                store.set(key, f"{acc:.4f}")
                store.delete_key(f"eval/{step - 2 * args.eval_every}")
            acc = float(wait_for(store, key))
            for group in opt.param_groups:
                group["lr"] = 2e-3 if acc < 0.98 else 2e-4
            if rank == 0:
                print(f"step {step} held-out acc {acc:.4f} lr {opt.param_groups[0]['lr']}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
