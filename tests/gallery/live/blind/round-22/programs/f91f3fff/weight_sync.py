import os
import tempfile
import time

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor


class RolloutPublisher:
    """Hands the current policy weights to the rollout engine through a directory."""

    def __init__(self, rank, root=None):
        self.rank = rank
        self.root = root or tempfile.mkdtemp(prefix="rollout_weights_")
        self.version = 0

    def _specs(self, model):
        return [(name, tuple(p.shape), p.dtype) for name, p in model.named_parameters()]

    def _write(self, model, specs):
        bucket = {}
        for name, param in model.named_parameters():
            tensor = param.data
            if isinstance(tensor, DTensor):
                tensor = tensor.full_tensor()
            bucket[name] = tensor.detach().clone()
        path = os.path.join(self.root, f"policy_v{self.version}.pt")
        torch.save({"specs": specs, "weights": bucket}, path + ".tmp")
        os.replace(path + ".tmp", path)
        return path

    def publish(self, model):
        start = time.time()
        specs = self._specs(model)
        self.version += 1
        if self.rank == 0:
            path = self._write(model, specs)
            print(f"published {os.path.basename(path)} in {time.time() - start:.2f}s", flush=True)
        dist.barrier()
