import argparse
import gc
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from mixer import DomainCorpus, MemoryHook


class GRUModel(nn.Module):
    def __init__(self, vocab=2048, d=96):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.head = nn.Linear(d, vocab)

    def forward(self, x):
        h, _ = self.rnn(self.embed(x))
        return self.head(h)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--domains", nargs="+", required=True, help="name=spans, one per rank")
    p.add_argument("--steps", type=int, default=100000)
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--ctx", type=int, default=32)
    args = p.parse_args()

    gc.freeze()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    name, spans = args.domains[rank % len(args.domains)].split("=")
    corpus = DomainCorpus(name, int(spans), seed=rank)
    print(f"rank {rank}: domain {name}, {len(corpus.spans)} spans", flush=True)

    torch.manual_seed(0)
    model = DDP(GRUModel())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    memory = MemoryHook()
    dist.barrier()
    t0 = time.time()
    for step in range(1, args.steps + 1):
        x, y = corpus.sample(args.batch_size, args.ctx)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        memory.after_step()
        if step % 25 == 0:
            total = loss.detach() / world
            dist.all_reduce(total)
            if rank == 0:
                print(f"step {step} loss {total.item():.4f} {(time.time() - t0) / 25 * 1e3:.0f} ms/step rss {memory.peak} MB", flush=True)
            t0 = time.time()


if __name__ == "__main__":
    main()
