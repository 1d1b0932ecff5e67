import argparse
import multiprocessing
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from scoring import score_chunk

VOCAB, LEN = 64, 24


class Seq2Tag(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def batch(gen, n=16):
    x = torch.randint(0, VOCAB, (n, LEN), generator=gen)
    return x, (x * 3 + 1) % VOCAB


def score_pairs(pairs, workers=2):
    ctx = multiprocessing.get_context("fork")
    out = ctx.Queue()
    procs = [ctx.Process(target=score_chunk, args=(pairs[i::workers], out)) for i in range(workers)]
    for p in procs:
        p.start()
    for p in procs:
        p.join()
    rows = []
    for _ in procs:
        rows.extend(out.get())
    return sum(r["score"] for r in rows) / len(rows)


@torch.no_grad()
def evaluate(model, rank, world, samples):
    model.eval()
    gen = torch.Generator().manual_seed(1000 + rank)
    pairs = []
    for _ in range(samples // 16):
        x, y = batch(gen)
        pred = model.module(x).argmax(-1)
        pairs += list(zip(pred.tolist(), y.tolist()))
    gathered = [None] * world if rank == 0 else None
    dist.gather_object(pairs, gathered, dst=0)
    score = torch.zeros(1)
    if rank == 0:
        score[0] = score_pairs([p for part in gathered for p in part])
    dist.broadcast(score, src=0)
    model.train()
    return score.item()


def worker(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    model = DDP(Seq2Tag())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    gen = torch.Generator().manual_seed(rank)
    if rank == 0:
        print("training begins", flush=True)
    for step in range(1, 20001):
        x, y = batch(gen)
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 40 == 0:
            samples = 640 if step % 200 == 0 else 32
            score = evaluate(model, rank, world, samples)
            if rank == 0:
                print(f"step {step} loss {loss.item():.3f} score {score:.3f} ({samples * world} pairs)", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--world-size", type=int, default=3)
    args = parser.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(args.world_size, port), nprocs=args.world_size)
