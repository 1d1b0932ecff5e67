import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

from checkpoint_manager import save_checkpoint

CHARS = "abcdefghijklmnopqrstuvwxyz .,;:!"


class CharModel(nn.Module):
    def __init__(self, dim=32, hidden=64):
        super().__init__()
        self.emb = nn.Embedding(len(CHARS), dim)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, len(CHARS))

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


@torch.no_grad()
def draw_samples(model, count=48, length=24):
    ids = torch.arange(count)[:, None] % len(CHARS)
    for _ in range(length):
        nxt = torch.multinomial(model(ids)[:, -1].softmax(-1), 1)
        ids = torch.cat([ids, nxt], 1)
    return ["".join(CHARS[i] for i in row) for row in ids.tolist()]


def main(run_dir, steps=100_000, save_every=40):
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    model = DDP(CharModel())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=2e-3)
    g = torch.Generator().manual_seed(100 + rank)
    for step in range(1, steps + 1):
        ids = torch.randint(0, len(CHARS), (8, 25), generator=g)
        ids[:, 1::2] = ids[:, 0:-1:2]
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        time.sleep(0.08)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0 and rank == 0:
            print(f"step {step:05d} | loss {loss.item():.4f}", flush=True)
        if step % save_every == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            samples = draw_samples(model.module) if rank == 0 else []
            save_checkpoint(run_dir, step, model.module.state_dict(), optimizer.optim.state_dict(), samples,
                            {"step": step, "loss": mean.item() / world_size}, rank, world_size)
            if rank == 0:
                print(f"checkpoint of step {step} complete", flush=True)
    dist.destroy_process_group()
