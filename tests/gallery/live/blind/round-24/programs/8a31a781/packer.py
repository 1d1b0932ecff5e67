import os
import time

import torch

from orchestrator import finished_rollouts


class Packer:
    """Runs on the master: packs the finished rollouts into one file per rank."""

    def __init__(self, root, world_size, length=128):
        self.root = root
        self.world_size = world_size
        self.length = length

    def pack(self, step):
        rollouts = finished_rollouts(step)
        mean = sum(r["reward"] for r in rollouts) / len(rollouts)
        for rank in range(self.world_size):
            tokens, weights = [], []
            for r in rollouts[rank::self.world_size]:
                tokens += r["tokens"]
                weights += [r["reward"] - mean] * len(r["tokens"])
            tokens = (tokens + [0] * self.length)[: self.length]
            weights = (weights + [0.0] * self.length)[: self.length]
            target = batch_path(self.root, step, rank)
            torch.save({"tokens": torch.tensor(tokens), "weights": torch.tensor(weights)}, target + ".tmp")
            os.rename(target + ".tmp", target)


def batch_path(root, step, rank):
    return os.path.join(root, f"step_{step}_rank_{rank}.bin")


class BatchReader:
    def __init__(self, root, rank, poll_s=0.2):
        self.root = root
        self.rank = rank
        self.poll_s = poll_s

    def wait_for_batch(self, step):
        path = batch_path(self.root, step, self.rank)
        while not os.path.exists(path):
            time.sleep(self.poll_s)
        batch = torch.load(path)
        os.remove(path)
        return batch
