import json
import os

import torch


class ShardedCheckpoint:
    """Every rank writes its shard; rank 0 publishes the manifest when all shards are there."""

    def __init__(self, store, rank, world, run_dir):
        self.store, self.rank, self.world, self.run_dir = store, rank, world, run_dir

    def save(self, step, model, optimizer, report):
        folder = os.path.join(self.run_dir, f"step{step}")
        os.makedirs(folder, exist_ok=True)
        shard = {"optimizer": optimizer.state_dict(), "report": report.rates()}
        if self.rank == 0:
            shard["model"] = model.state_dict()
        torch.save(shard, os.path.join(folder, f"shard{self.rank}.pt"))
        self.store.set(f"ckpt/{step}/shard/{self.rank}", "written")
        if self.rank == 0:
            self.store.wait([f"ckpt/{step}/shard/{r}" for r in range(self.world)])
            with open(os.path.join(folder, "manifest.json"), "w") as f:
                json.dump({"step": step, "shards": self.world}, f)
            self.store.set(f"ckpt/{step}/published", "1")
            print(f"published checkpoint at step {step}", flush=True)
        self.store.wait([f"ckpt/{step}/published"])


class DomainReport:
    def __init__(self, domains):
        self.domains = domains
        self.reset()

    def reset(self):
        self.seen = {d: 0 for d in self.domains}
        self.hits = {d: 0 for d in self.domains}

    def update(self, domain, hit):
        self.seen[domain] += 1
        self.hits[domain] += int(hit)

    def rates(self):
        rates = {d: self.hits[d] / self.seen[d] for d in self.domains}
        self.reset()
        return rates
