import argparse
import logging
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

from checkpointing import CheckpointManager

torch.set_num_threads(1)
log = logging.getLogger("pretrain")


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class LM(nn.Module):
    def __init__(self, vocab=300, d=48, n=3):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(n))
        self.out = nn.Linear(d, vocab, bias=False)

    def forward(self, ids):
        h = self.emb(ids)
        for b in self.blocks:
            h = b(h)
        return self.out(h)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--save-every", type=int, default=100)
    p.add_argument("--output", default="outputs")
    args = p.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING,
                        format=f"%(asctime)s [rank{rank}] %(message)s")
    torch.manual_seed(0)
    model = LM()
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    for b in model.blocks:
        fully_shard(b, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    ckpt = CheckpointManager(args.output, save_every=args.save_every, storage="storage.json")
    log.info("world size %d, params %d", dist.get_world_size(), sum(x.numel() for x in model.parameters()))

    g = torch.Generator().manual_seed(1000 + rank)
    t0 = time.time()
    for step in range(1, args.steps + 1):
        ids = torch.randint(0, 300, (4, 33), generator=g)
        logits = model(ids[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad()
        time.sleep(0.1)
        if step % 10 == 0:
            log.info("step %d loss %.4f %.2f s/it", step, loss.item(), (time.time() - t0) / step)
        ckpt.maybe_save(step, model, opt)
    ckpt.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
