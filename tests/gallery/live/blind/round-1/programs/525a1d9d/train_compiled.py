import argparse
import logging
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

log = logging.getLogger("compiled")
BUCKETS = [48, 64, 96, 128, 160, 192, 224, 256]


class MixerBlock(nn.Module):
    def __init__(self, dim, expand, act):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.gate = nn.Linear(dim, expand * dim)
        self.up = nn.Linear(dim, expand * dim)
        self.down = nn.Linear(expand * dim, dim)
        self.act = act

    def forward(self, x):
        h = self.norm(x)
        h = h + 0.5 * h.roll(1, dims=1)
        return x + self.down(self.act(self.gate(h)) * self.up(h))


class Mixer(nn.Module):
    def __init__(self, vocab=1000, dim=96, layers=12):
        super().__init__()
        acts = [F.silu, F.gelu, torch.tanh, F.relu, F.softplus]
        self.emb = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(MixerBlock(dim, 2 + i % 3, acts[i % len(acts)]) for i in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.emb(ids)
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x))


def bucket_for(step, every):
    return BUCKETS[min(step // every, len(BUCKETS) - 1)]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=20000)
    ap.add_argument("--bs", type=int, default=4)
    ap.add_argument("--grow-every", type=int, default=40)
    ap.add_argument("--backend", default="aot_eager")
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s rank {rank} %(message)s")
    torch.manual_seed(0)
    torch._dynamo.config.recompile_limit = 32
    model = DDP(Mixer())
    step_fn = torch.compile(model, dynamic=False, backend=args.backend)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    gen = torch.Generator().manual_seed(rank)

    last = None
    for step in range(args.steps):
        n = bucket_for(step, args.grow_every)
        t0 = time.time()
        ids = torch.randint(0, 1000, (args.bs, n + 1), generator=gen)
        loss = F.cross_entropy(step_fn(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if n != last:
            log.info("length %d: first step took %.1fs", n, time.time() - t0)
            last = n
        if step % 10 == 0 and rank == 0:
            log.info("step %d len %d loss %.3f %.3fs", step, n, loss.item(), time.time() - t0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
