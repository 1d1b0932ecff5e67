import argparse
import logging

import torch
import torch.distributed as dist
from torch import nn

from p2p import StageComm
from schedule import OneFOneB

log = logging.getLogger("pp")
VOCAB, DIM, SEQ, MICRO = 512, 192, 64, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.ff = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        return x + self.ff(self.norm(x))


def build_stage(rank, size):
    layers = [Block() for _ in range(2)]
    if rank == 0:
        layers.insert(0, nn.Embedding(VOCAB, DIM))
    if rank == size - 1:
        layers += [nn.LayerNorm(DIM), nn.Linear(DIM, VOCAB)]
    return nn.Sequential(*layers)


def parse_rampup(text):
    return sorted((int(s), int(n)) for n, s in (p.split(":") for p in text.split(",")))


def micro_count(rampup, step):
    return [n for start, n in rampup if start <= step][-1]


def draw(gen, n):
    out = []
    for _ in range(n):
        t = torch.randint(0, VOCAB, (MICRO, SEQ + 1), generator=gen)
        out.append((t[:, :-1], t[:, 1:]))
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rampup", default="1:0")
    p.add_argument("--steps", type=int, default=20000)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [stage {rank}] %(message)s")
    torch.manual_seed(17 + rank)
    stage = build_stage(rank, size)
    opt = torch.optim.AdamW(stage.parameters(), lr=3e-4)
    runner = OneFOneB(stage, StageComm((MICRO, SEQ, DIM)))
    rampup = parse_rampup(args.rampup)
    gen = torch.Generator().manual_seed(5)
    current = 0
    for step in range(args.steps):
        n = micro_count(rampup, step)
        if n != current:
            log.info("step %d: %d micro-batches per step", step, n)
            current = n
        opt.zero_grad()
        loss = runner.step(draw(gen, n))
        opt.step()
        if loss is not None and step % 10 == 0:
            log.info("step %d loss %.4f", step, loss)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
