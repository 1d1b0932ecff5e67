import datetime
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hardnegs import read_round, write_round

DOCS = 96
STEPS_PER_ROUND = 30


def corpus(round_no):
    """The pool shrinks as easy documents are dropped."""
    g = torch.Generator().manual_seed(21)
    pool = torch.randn(DOCS, 40, generator=g)
    return pool[: max(4, DOCS >> (2 * round_no))]


def train(shared):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(minutes=60))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(4)
    net = nn.Sequential(nn.Linear(40, 64), nn.Tanh(), nn.Linear(64, 16))
    model = DistributedDataParallel(net)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    gen = torch.Generator().manual_seed(rank)
    for round_no in range(200):
        docs = corpus(round_no)
        if int(os.environ["LOCAL_RANK"]) == 0:
            net.eval()
            with torch.no_grad():
                write_round(shared, round_no, net(docs))
            net.train()
        negatives = read_round(shared, round_no)
        for step in range(STEPS_PER_ROUND):
            q = torch.randint(0, len(docs), (8,), generator=gen)
            n = torch.tensor([negatives[i][step % 4] for i in q.tolist()])
            noisy = docs[q] + 0.1 * torch.randn(8, 40, generator=gen)
            a, b, c = model(torch.cat([docs[q], noisy, docs[n]])).chunk(3)
            loss = F.triplet_margin_loss(a, b, c)
            time.sleep(0.25)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if rank == 0 and step % 10 == 0:
                print(f"round {round_no} step {step} loss {loss.item():.4f} pool {len(docs)}", flush=True)
    dist.destroy_process_group()
