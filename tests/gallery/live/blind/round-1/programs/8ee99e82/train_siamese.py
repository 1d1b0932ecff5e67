import argparse
import logging
import random

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from scoring import score_pairs

log = logging.getLogger("siamese")
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def name_pair(rng):
    a = "".join(rng.choices(ALPHABET, k=rng.randint(5, 12)))
    if rng.random() < 0.5:
        i = rng.randrange(len(a))
        return a, a[:i] + rng.choice(ALPHABET) + a[i + 1 :], 1.0
    return a, "".join(rng.choices(ALPHABET, k=rng.randint(5, 12))), 0.0


def encode(words, width=12):
    out = torch.zeros(len(words), width, dtype=torch.long)
    for r, w in enumerate(words):
        for c, ch in enumerate(w[:width]):
            out[r, c] = ALPHABET.index(ch) + 1
    return out


class Siamese(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.emb = nn.Embedding(27, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def forward(self, a, b):
        va, vb = self.rnn(self.emb(a))[1][0], self.rnn(self.emb(b))[1][0]
        return F.cosine_similarity(va, vb) * 5


def hard_examples(rng, n):
    pairs = [name_pair(rng)[:2] for _ in range(n)]
    rows = sorted(score_pairs(pairs), key=lambda r: -r["dice"])
    return [(r["a"], r["b"]) for r in rows if 0.3 < r["dice"] < 0.9]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=50)
    ap.add_argument("--steps", type=int, default=80)
    ap.add_argument("--bs", type=int, default=32)
    ap.add_argument("--mine", type=int, default=4000)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s {rank} %(message)s")
    torch.manual_seed(0)
    model = DDP(Siamese())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    rng = random.Random(rank)
    extra = []
    for epoch in range(args.epochs):
        total = 0.0
        for _ in range(args.steps):
            rows = [name_pair(rng) for _ in range(args.bs)]
            rows += [(a, b, 1.0) for a, b in extra[: args.bs // 4]]
            extra = extra[args.bs // 4 :]
            a, b, y = zip(*rows)
            loss = F.binary_cross_entropy_with_logits(model(encode(a), encode(b)), torch.tensor(y))
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.item()
        box = [None]
        if rank == 0:
            log.info("epoch %d loss %.4f", epoch, total / args.steps)
            box[0] = hard_examples(random.Random(1000 + epoch), args.mine)
            log.info("mined %d pairs", len(box[0]))
        dist.broadcast_object_list(box, src=0)
        extra = box[0][rank::world]
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
