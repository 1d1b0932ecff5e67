import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

import p2p


class Block(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.n1 = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.n2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        h = self.n1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.n2(x))


class Stage(nn.Module):
    def __init__(self, cfg, rank, world):
        super().__init__()
        self.first, self.last = rank == 0, rank == world - 1
        if self.first:
            self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.blocks = nn.ModuleList(Block(cfg.dim) for _ in range(cfg.layers // world))
        if self.last:
            self.norm = nn.LayerNorm(cfg.dim)
            self.head = nn.Linear(cfg.dim, cfg.vocab)

    def forward(self, x):
        if self.first:
            x = self.embed(x)
        for b in self.blocks:
            x = b(x)
        if self.last:
            x = self.head(self.norm(x))
        return x


class StageWorker:
    """One stage of the pipeline: takes requests from the stage before it and
    runs one optimizer step per turn of the loop."""

    def __init__(self, cfg, source=None):
        self.cfg = cfg
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(100 + self.rank)
        self.model = Stage(cfg, self.rank, self.world)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr)
        self.source = source
        self.step = 0
        self.handlers = {"set_lr": self.on_set_lr, "snapshot": self.on_snapshot}

    @property
    def first(self):
        return self.rank == 0

    @property
    def last(self):
        return self.rank == self.world - 1

    def on_set_lr(self, value):
        for g in self.opt.param_groups:
            g["lr"] = value

    def on_snapshot(self, tag):
        dist.barrier()
        path = os.path.join(self.cfg.out_dir, f"{tag}-stage{self.rank}.pt")
        torch.save({"model": self.model.state_dict(), "opt": self.opt.state_dict(), "step": self.step}, path)
        dist.barrier()
        if self.first:
            print(f"snapshot {tag} written to {self.cfg.out_dir}", flush=True)

    def recv_requests(self):
        if self.first:
            return self.source.requests(self.step)
        return p2p.recv_pyobj(self.rank - 1)

    def process_requests(self, reqs):
        for name, arg in reqs:
            self.handlers[name](arg)

    def forward_requests(self, reqs):
        if not self.last:
            p2p.send_pyobj(reqs, self.rank + 1)

    def run_step(self):
        cfg = self.cfg
        shape = (cfg.micro_bs, cfg.seq_len, cfg.dim)
        gen = torch.Generator().manual_seed(self.step)
        tokens = torch.randint(0, cfg.vocab, (cfg.micro_batches, cfg.micro_bs, cfg.seq_len + 1), generator=gen)
        saved, total = [], 0.0
        for m in range(cfg.micro_batches):
            x = tokens[m, :, :-1] if self.first else p2p.recv_tensor(shape, self.rank - 1, True)
            y = self.model(x)
            if self.last:
                y = F.cross_entropy(y.flatten(0, 1), tokens[m, :, 1:].flatten()) / cfg.micro_batches
                total += y.item()
            else:
                p2p.send_tensor(y, self.rank + 1)
            saved.append((x, y))
        for x, y in saved:
            if self.last:
                y.backward()
            else:
                y.backward(p2p.recv_tensor(shape, self.rank + 1))
            if not self.first:
                p2p.send_tensor(x.grad, self.rank - 1)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.opt.step()
        self.opt.zero_grad()
        return total

    def loop(self):
        t0 = time.time()
        while self.step < self.cfg.max_steps:
            reqs = self.recv_requests()
            self.process_requests(reqs)
            self.forward_requests(reqs)
            loss = self.run_step()
            self.step += 1
            if self.last and self.step % 20 == 0:
                print(f"step {self.step} loss {loss:.4f} {20 / (time.time() - t0):.2f} it/s", flush=True)
                t0 = time.time()
