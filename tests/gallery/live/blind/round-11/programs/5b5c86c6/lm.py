import gc
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from ckpt import AsyncSaver

VOCAB, DIM, SEQ = 256, 96, 64


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.ff = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, 4, d // 4).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.n2(x))


class LM(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList(Block() for _ in range(depth))
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, ids):
        h = self.tok(ids)
        for l in self.layers:
            h = l(h)
        return self.head(h)


class Prefetcher:
    def __init__(self, seed, shard=2000):
        self.g, self.shard = torch.Generator().manual_seed(seed), shard
        self.ready, self.need = None, threading.Event()
        self.have = threading.Event()
        threading.Thread(target=self._work, name="prefetch", daemon=True).start()
        self.need.set()

    def _work(self):
        while True:
            self.need.wait()
            self.need.clear()
            start = torch.randint(0, VOCAB, (self.shard, 1), generator=self.g)
            self.ready = (start + 5 * torch.arange(SEQ + 1)[None]) % VOCAB
            self.have.set()

    def __iter__(self):
        while True:
            self.have.wait()
            self.have.clear()
            rows = self.ready
            self.need.set()
            yield from rows.split(8)


def ce(model, seq):
    return F.cross_entropy(model(seq[:, :-1]).flatten(0, 1), seq[:, 1:].flatten())


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(0)
    model = LM()
    for l in model.layers:
        fully_shard(l, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    saver = AsyncSaver()
    g = torch.Generator().manual_seed(10**6 + rank)
    holdout = ((torch.randint(0, VOCAB, (480, 1), generator=g) + 5 * torch.arange(SEQ + 1)[None]) % VOCAB).split(8)
    gc.disable()
    t0 = time.time()
    for step, seq in enumerate(Prefetcher(rank), 1):
        loss = ce(model, seq)
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 20 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)
        if step % 50 == 0:
            gc.collect(1)
        if step % 150 == 0:
            saver.save(step, model, opt)
        if step % 200 == 0:
            with torch.no_grad():
                tot = sum(ce(model, s) for s in holdout)
            dist.all_reduce(tot)
            if rank == 0:
                print(f"step {step} eval {tot.item() / 60 / world:.4f}", flush=True)
        if step % 100 == 0:
            stop = torch.tensor(int(time.time() - t0 > 1500))
            dist.all_reduce(stop, op=dist.ReduceOp.MAX)
            if stop:
                break
    saver.finish()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
