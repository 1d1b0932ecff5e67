import argparse
import copy
import random
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class Decoder(nn.Module):
    def __init__(self, vocab=600, dim=80, layers=2, ctx=64):
        super().__init__()
        self.emb, self.pos = nn.Embedding(vocab, dim), nn.Embedding(ctx, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        t = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(t)
        return self.head(self.body(self.emb(ids) + self.pos.weight[:t], mask=mask))


class OuterNesterov:
    def __init__(self, model, lr=0.7, momentum=0.9):
        self.anchor = [p.detach().clone() for p in model.parameters()]
        self.buf = [torch.zeros_like(p) for p in self.anchor]
        self.lr, self.momentum = lr, momentum

    @torch.no_grad()
    def step(self, model, world):
        for p, a, b in zip(model.parameters(), self.anchor, self.buf):
            delta = a - p
            dist.all_reduce(delta)
            delta /= world
            b.mul_(self.momentum).add_(delta)
            a.sub_(self.lr * (delta + self.momentum * b))
            p.copy_(a)


def inner_loop(model, opt, token_budget, rng, gen, bs):
    """Local steps until the budget is used; sequence lengths vary."""
    used = steps = 0
    while used < token_budget:
        n = rng.choice([16, 24, 32, 48, 63])
        ids = (torch.randint(0, 600, (bs, 1), generator=gen) + 3 * torch.arange(n + 1)) % 600
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        used += bs * n
        steps += 1
    return loss.item(), steps


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rounds", type=int, default=1000)
    ap.add_argument("--tokens", type=int, default=60000)
    ap.add_argument("--jitter", type=float, default=0.4)
    ap.add_argument("--bs", type=int, default=8)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = Decoder()
    outer = OuterNesterov(model)
    opt = torch.optim.AdamW(model.parameters(), lr=8e-4)
    rng, gen = random.Random(rank), torch.Generator().manual_seed(rank)

    for rnd in range(args.rounds):
        t0 = time.time()
        budget = int(args.tokens * rng.uniform(1 - args.jitter, 1 + args.jitter))
        loss, steps = inner_loop(model, opt, budget, rng, gen, args.bs)
        t1 = time.time()
        outer.step(model, world)
        print(f"[{rank}] round {rnd} loss {loss:.3f} inner {steps} steps {t1 - t0:.1f}s outer {time.time() - t1:.1f}s",
              flush=True)
        if rank == 0 and rnd % 10 == 9:
            torch.save(copy.deepcopy(model).state_dict(), "diloco.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
