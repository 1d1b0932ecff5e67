import argparse
import logging
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

import bpe

log = logging.getLogger("train")


class LM(nn.Module):
    def __init__(self, vocab, dim=96):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, dim, 2, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def prepare(args, rank):
    words = bpe.make_text(args.words, seed=5)
    box = [None]
    if rank == 0:
        log.info("learning %d merges on %d words", args.merges, len(words))
        t0 = time.time()
        box[0] = bpe.learn_merges(words, args.merges, log=log.info)
        log.info("merges ready after %.1fs", time.time() - t0)
    dist.broadcast_object_list(box, src=0)
    merges, table = box[0], {}
    for sym in sorted({c for w in words for c in w} | {a + b for a, b in merges}):
        table[sym] = len(table)
    return merges, table


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--words", type=int, default=400000)
    ap.add_argument("--merges", type=int, default=500)
    ap.add_argument("--encode-words", type=int, default=40000)
    ap.add_argument("--steps", type=int, default=30000)
    ap.add_argument("--bs", type=int, default=8)
    ap.add_argument("--bptt", type=int, default=32)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s {rank} %(message)s")
    merges, table = prepare(args, rank)
    t0 = time.time()
    data = torch.tensor(bpe.encode(bpe.make_text(args.encode_words, seed=100 + rank), merges, table))
    log.info("encoded %d tokens in %.1fs", len(data), time.time() - t0)
    size = torch.tensor(len(table))
    dist.all_reduce(size, op=dist.ReduceOp.MAX)

    torch.manual_seed(0)
    model = DDP(LM(int(size)))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    gen = torch.Generator().manual_seed(rank)
    for step in range(1, args.steps + 1):
        s = torch.randint(0, len(data) - args.bptt - 1, (args.bs, 1), generator=gen) + torch.arange(args.bptt + 1)
        block = data[s]
        loss = F.cross_entropy(model(block[:, :-1]).flatten(0, 1), block[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 50 == 0:
            log.info("step %d loss %.3f", step, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
