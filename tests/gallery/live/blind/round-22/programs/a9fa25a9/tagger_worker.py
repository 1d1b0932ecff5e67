import random
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from scoreboard import Scoreboard

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
TAG_IDS = {t: i for i, t in enumerate(TAGS)}
EVAL_EVERY = 25


def make_eval_lines(rank, n=90):
    rnd = random.Random(rank)
    lines = []
    for i in range(n):
        words = [f"w{rnd.randint(0, 299)}" for _ in range(6)]
        tags = [rnd.choice(TAGS) for _ in words]
        if rank == 1 and i == 71:
            tags[2] = "B-ORG"
        lines.append(" ".join(f"{w}|{t}" for w, t in zip(words, tags)))
    return lines


def parse(line):
    words, tags = zip(*(tok.split("|") for tok in line.split()))
    return torch.tensor([int(w[1:]) for w in words]), torch.tensor([TAG_IDS[t] for t in tags])


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(300, 24)
        self.rnn = nn.GRU(24, 24, batch_first=True)
        self.head = nn.Linear(24, len(TAGS))

    def forward(self, ids):
        return self.head(self.rnn(self.emb(ids))[0])


@torch.no_grad()
def evaluate(model, lines, start, count):
    hits = total = 0
    for line in lines[start:start + count]:
        ids, tags = parse(line)
        hits += int((model(ids[None])[0].argmax(-1) == tags).sum())
        total += len(tags)
        time.sleep(0.03)
    return {"hits": hits, "total": total}


def main(rank, world, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.PrefixStore("pg", store), rank=rank,
                            world_size=world, timeout=timedelta(minutes=30))
    board = Scoreboard(dist.PrefixStore("eval", store), rank, world)
    torch.manual_seed(0)
    model = Tagger()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    gen = torch.Generator().manual_seed(rank)
    lines = make_eval_lines(rank)
    for step in range(1, 4001):
        ids = torch.randint(0, 300, (8, 12), generator=gen)
        tags = ids % len(TAGS)
        loss = F.cross_entropy(model(ids).flatten(0, 1), tags.flatten())
        opt.zero_grad()
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= world
        opt.step()
        time.sleep(0.1)
        if step % EVAL_EVERY == 0:
            round_id = step // EVAL_EVERY
            start = (round_id - 1) * 15 % len(lines)
            board.publish(round_id, evaluate(model, lines, start, 15))
            acc = board.collect(round_id)
            if rank == 0:
                print(f"step {step} loss {loss.item():.3f} dev acc {acc:.3f}", flush=True)
    dist.destroy_process_group()
