import json
import os
import time

import torch


class WeightPublisher:
    """Writes one shard per rank and a manifest for the inference fleet."""

    def __init__(self, root, rank, world_size, barrier, full_every):
        self.root = root
        self.rank = rank
        self.world_size = world_size
        self.barrier = barrier
        self.full_every = full_every
        self.version = 0

    def write_shard(self, model):
        names = sorted(model.state_dict())
        mine = {n: model.state_dict()[n] for i, n in enumerate(names) if i % self.world_size == self.rank}
        torch.save(mine, os.path.join(self.root, f"shard-{self.rank}.pt"))
        time.sleep(0.1 if self.rank == 0 else 0.4)

    def write_optimizer(self, opt):
        torch.save(opt.state_dict(), os.path.join(self.root, "optimizer.pt"))
        time.sleep(3.0)

    def publish(self, model, opt):
        self.version += 1
        self.write_shard(model)
        if self.rank == 0 and self.version % self.full_every == 0:
            self.write_optimizer(opt)
        self.barrier.wait("publish")
        if self.rank == 0:
            with open(os.path.join(self.root, "manifest.json"), "w") as f:
                json.dump({"version": self.version, "shards": self.world_size}, f)
            print(f"published version {self.version}", flush=True)
