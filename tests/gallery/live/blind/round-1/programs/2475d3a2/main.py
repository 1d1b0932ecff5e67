import argparse
import contextlib
import logging

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from corpus import CHARS, cached_corpus

log = logging.getLogger("charlm")


@contextlib.contextmanager
def main_process_first():
    if dist.get_rank() != 0:
        dist.barrier()
    yield
    if dist.get_rank() == 0:
        dist.barrier()


class CharLSTM(nn.Module):
    def __init__(self, vocab, dim=128, layers=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, dim, num_layers=layers, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, x, state=None):
        h, state = self.rnn(self.emb(x), state)
        return self.out(h), state


def get_batch(corpus, bs, bptt, gen):
    starts = torch.randint(0, len(corpus) - bptt - 1, (bs,), generator=gen).tolist()
    rows = [torch.from_numpy(corpus[s : s + bptt + 1].astype("int64")) for s in starts]
    block = torch.stack(rows)
    return block[:, :-1], block[:, 1:]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--cache-dir", default="cache")
    ap.add_argument("--iters", type=int, default=20000)
    ap.add_argument("--bptt", type=int, default=48)
    ap.add_argument("--bs", type=int, default=16)
    ap.add_argument("--clip", type=float, default=0.5)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s rank{rank} %(name)s: %(message)s")

    with main_process_first():
        corpus = cached_corpus(args.cache_dir)
    log.info("corpus has %d tokens", len(corpus))

    torch.manual_seed(0)
    model = DistributedDataParallel(CharLSTM(len(CHARS)))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    gen = torch.Generator().manual_seed(rank)
    running = 0.0
    for it in range(1, args.iters + 1):
        x, y = get_batch(corpus, args.bs, args.bptt, gen)
        logits, _ = model(x)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        opt.step()
        running += loss.item()
        if it % 50 == 0:
            log.info("iter %d bits/char %.3f", it, running / 50 / 0.6931)
            running = 0.0
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
