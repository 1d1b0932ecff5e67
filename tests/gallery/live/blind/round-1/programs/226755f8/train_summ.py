import argparse
import logging
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from metrics import bigram_overlap, rouge_l

log = logging.getLogger("summ")
BOS, EOS = 1, 2


class Seq2Seq(nn.Module):
    def __init__(self, vocab=400, dim=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.enc = nn.GRU(dim, dim, batch_first=True)
        self.dec = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, src, tgt):
        _, h = self.enc(self.emb(src))
        return self.out(self.dec(self.emb(tgt), h)[0])

    @torch.no_grad()
    def beam(self, src, width, max_len):
        _, h = self.enc(self.emb(src[None]))
        beams = [([BOS], 0.0, h)]
        for _ in range(max_len):
            cand = []
            for toks, score, h in beams:
                if toks[-1] == EOS:
                    cand.append((toks, score, h))
                    continue
                y, h2 = self.dec(self.emb(torch.tensor([[toks[-1]]])), h)
                lp, ix = self.out(y)[0, 0].log_softmax(-1).topk(width)
                cand += [(toks + [int(i)], score + float(p), h2) for p, i in zip(lp, ix)]
            beams = sorted(cand, key=lambda b: -b[1])[:width]
            if all(b[0][-1] == EOS for b in beams):
                break
        return beams[0][0][1:]


def batch(gen, bs):
    src = torch.randint(3, 400, (bs, 40), generator=gen)
    tgt = torch.cat([torch.full((bs, 1), BOS), src[:, ::4], torch.full((bs, 1), EOS)], dim=1)
    return src, tgt


def evaluate(net, docs, rank, world):
    t0 = time.time()
    rows = []
    n = len(docs)
    for k in range(rank * n // world, (rank + 1) * n // world):
        src, ref = docs[k]
        pred = net.beam(src, width=4, max_len=12 + 40 * k // n)
        rows.append((rouge_l(pred, ref), bigram_overlap(pred, ref)))
    gathered = [None] * world
    dist.all_gather_object(gathered, rows)
    flat = [r for part in gathered for r in part]
    return {"rougeL": sum(r[0] for r in flat) / len(flat), "bigram": sum(r[1] for r in flat) / len(flat),
            "n": len(flat), "sec": round(time.time() - t0, 1)}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100000)
    ap.add_argument("--eval-every", type=int, default=120)
    ap.add_argument("--eval-docs", type=int, default=600)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s {rank} %(message)s")
    torch.manual_seed(0)
    model = DDP(Seq2Seq())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    gen = torch.Generator().manual_seed(10 + rank)
    vs, vt = batch(torch.Generator().manual_seed(3), args.eval_docs)
    docs = [(s, t[1:].tolist()) for s, t in zip(vs, vt)]

    for step in range(1, args.steps + 1):
        src, tgt = batch(gen, 16)
        loss = F.cross_entropy(model(src, tgt[:, :-1]).flatten(0, 1), tgt[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 50 == 0 and rank == 0:
            log.info("step %d loss %.3f", step, loss.item())
        if step % args.eval_every == 0:
            model.eval()
            res = evaluate(model.module, docs, rank, world)
            model.train()
            if rank == 0:
                log.info("eval at %d: %s", step, res)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
