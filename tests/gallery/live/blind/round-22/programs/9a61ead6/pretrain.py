import argparse
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from checkpointer import Checkpointer


class TinyLM(nn.Module):
    def __init__(self, vocab=128, dim=32, layers=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 2, 64, dropout=0.0, batch_first=True) for _ in range(layers)
        )
        self.out = nn.Linear(dim, vocab)

    def forward(self, x):
        h = self.emb(x)
        for block in self.blocks:
            h = block(h)
        return self.out(h)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save-folder", required=True)
    parser.add_argument("--save-interval", type=int, default=20)
    parser.add_argument("--max-steps", type=int, default=50000)
    args = parser.parse_args()

    dist.init_process_group("gloo", timeout=timedelta(minutes=60))
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(0)
    model = TinyLM()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    checkpointer = Checkpointer(args.save_folder)
    generator = torch.Generator().manual_seed(rank)
    history = []

    for step in range(1, args.max_steps + 1):
        tokens = torch.randint(0, 128, (4, 17), generator=generator)
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.1)
        history.append(loss.item())
        if rank == 0 and step % 10 == 0:
            print(f"[step={step}/{args.max_steps}] CrossEntropyLoss={history[-1]:.3f}", flush=True)
        if step % args.save_interval == 0:
            checkpointer.save(model, optimizer, step, history)
            if rank == 0:
                print(f"checkpoint saved at step {step}", flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
