import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from transformers import GPT2Config, GPT2LMHeadModel, get_cosine_schedule_with_warmup

from tracker import Tracker

DOMAINS = ["web", "code", "books"]


def tiny_gpt():
    return GPT2LMHeadModel(GPT2Config(vocab_size=200, n_positions=32, n_embd=32, n_layer=2, n_head=2,
                                      resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))


def sample(gen, domain, n=4, length=24):
    start = torch.randint(0, 200, (n, 1), generator=gen)
    return (start + torch.arange(length) * (2 + domain)) % 200


@torch.no_grad()
def evaluate(model, domain, rounds=10):
    model.eval()
    gen = torch.Generator().manual_seed(999)
    total = 0.0
    for _ in range(rounds):
        ids = sample(gen, domain)
        total += model(input_ids=ids, labels=ids).loss.item()
        time.sleep(0.05)
    model.train()
    return total / rounds


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(tiny_gpt())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    sched = get_cosine_schedule_with_warmup(opt, 20, 50000)
    gen = torch.Generator().manual_seed(rank)
    tracker = Tracker(f"rank{rank}")

    for step in range(1, 50001):
        ids = sample(gen, rank % len(DOMAINS))
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        opt.step()
        sched.step()
        opt.zero_grad()
        time.sleep(0.1)
        if rank == 0 and step % 10 == 0:
            tracker.log(step, loss=loss.item(), lr=sched.get_last_lr()[0])
            print(f"step {step} loss {loss.item():.3f}", flush=True)
        if step % 60 == 0:
            domain = rank % len(DOMAINS)
            value = evaluate(model.module, domain)
            tracker.log(step, **{f"eval_{DOMAINS[domain]}": value})
            mean = torch.tensor(value)
            dist.all_reduce(mean)
            if rank == 0:
                print(f"eval at {step}: {mean.item() / world:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
