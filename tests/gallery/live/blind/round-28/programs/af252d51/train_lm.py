import argparse
import os
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from async_ckpt import AsyncCheckpoints
from evaluation import perplexity

VOCAB, DIM = 128, 24


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))
            for _ in range(2))
        self.head = nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100000)
    ap.add_argument("--eval-every", type=int, default=100)
    ap.add_argument("--save-every", type=int, default=50)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(0)
    model = LM()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    root = os.path.join(tempfile.gettempdir(), f"lm-{os.environ['TORCHELASTIC_RUN_ID']}")
    ckpt = AsyncCheckpoints(root)
    gen = torch.Generator().manual_seed(rank)
    began = time.time()

    for step in range(1, args.steps + 1):
        start = torch.randint(0, VOCAB, (8, 1), generator=gen)
        ids = (start + torch.arange(17)) % VOCAB
        loss = F.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.12)
        if rank == 0 and step % 20 == 0:
            print(f"{time.time() - began:7.1f}s step {step} loss {loss.item():.4f}", flush=True)
        if step % args.save_every == 0:
            ckpt.save(step, model, opt)
        if step % args.eval_every == 0:
            ppl = perplexity(model, VOCAB, rank, world)
            if rank == 0:
                print(f"{time.time() - began:7.1f}s step {step} eval perplexity {ppl:.2f}", flush=True)

    ckpt.wait()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
