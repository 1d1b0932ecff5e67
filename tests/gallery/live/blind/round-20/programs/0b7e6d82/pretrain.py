import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from data import TokenStream
from saver import AsyncSaver

VOCAB, DIM = 800, 128


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.conv = nn.Conv1d(DIM, DIM, 4, groups=DIM)
        self.ff = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.SiLU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        h = F.pad(self.norm(x).transpose(1, 2), (3, 0))
        return x + self.ff(self.conv(h).transpose(1, 2))


class LM(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, DIM)
        self.blocks = nn.ModuleList(Mixer() for _ in range(depth))
        self.out = nn.Linear(DIM, VOCAB)

    def forward(self, ids, labels):
        x = self.emb(ids)
        for b in self.blocks:
            x = b(x)
        return F.cross_entropy(self.out(x).flatten(0, 1), labels.flatten())


@torch.no_grad()
def evaluate(model, stream, batches=40):
    model.eval()
    total = torch.zeros(2)
    for _, (ids, labels) in zip(range(batches), stream):
        total += torch.tensor([model(ids, labels).item(), 1.0])
    dist.all_reduce(total)
    model.train()
    return (total[0] / total[1]).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--save-every", type=int, default=60)
    p.add_argument("--eval-every", type=int, default=100)
    p.add_argument("--minutes", type=float, default=20)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    model = LM()
    for b in model.blocks:
        fully_shard(b, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    saver = AsyncSaver()
    held_out = TokenStream(500 + rank, VOCAB, 8, 65)
    began = time.time()
    for step, (ids, labels) in enumerate(TokenStream(rank, VOCAB, 8, 65), 1):
        loss = model(ids, labels)
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        norm = norm.full_tensor() if isinstance(norm, DTensor) else norm
        opt.step()
        if step % 20 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f} norm {norm.item():.3f} {step / (time.time() - began):.1f} it/s", flush=True)
        if step % args.save_every == 0:
            saver.save(model, opt, step)
        if step % args.eval_every == 0:
            score = evaluate(model, held_out)
            over = torch.tensor([time.time() - began > args.minutes * 60], dtype=torch.int)
            dist.broadcast(over, src=0)
            if rank == 0:
                print(f"step {step} eval {score:.4f}", flush=True)
            if over.item():
                break
    saver.wait()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
