import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.fsdp import fully_shard

from control import SnapshotRequests, WalltimeWatch
from curriculum import VOCAB, Curriculum


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def forward(self, x):
        mixed = torch.cumsum(x, 1) / torch.arange(1, x.size(1) + 1).view(1, -1, 1)
        return x + self.down(F.gelu(self.up(self.norm(x + mixed))))


class LM(nn.Module):
    def __init__(self, dim=96, layers=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(layers))
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def lm_loss(model, ids):
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--run-dir", required=True)
    parser.add_argument("--steps", type=int, default=200000)
    args = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = LM()
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    optim = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data, held_out = Curriculum(rank), Curriculum(100 + rank)
    requests = SnapshotRequests()
    if rank == 0:
        WalltimeWatch(20).start()
    start = time.time()
    for step in range(1, args.steps + 1):
        loss = lm_loss(model, data.batch(step))
        loss.backward()
        optim.step()
        optim.zero_grad()
        if rank == 0 and step % 50 == 0:
            print(f"step {step} len {data.length(step)} loss {loss.item():.3f} {step / (time.time() - start):.1f} it/s")
        if step % 300 == 0:
            with torch.no_grad():
                total = sum(lm_loss(model, held_out.batch(step)) for _ in range(20)) / 20
            dist.all_reduce(total)
            if rank == 0:
                print(f"step {step} valid {total.item() / dist.get_world_size():.3f}")
        if step % 5 == 0 and requests.agreed():
            dcp.save({"model": get_model_state_dict(model)}, checkpoint_id=os.path.join(args.run_dir, "snapshot"))
            if rank == 0:
                print(f"step {step} snapshot written")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
