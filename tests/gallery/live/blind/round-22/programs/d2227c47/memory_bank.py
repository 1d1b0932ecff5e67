import threading
import time

import torch
from torch.distributed.tensor import Shard, distribute_tensor, zeros


class MemoryBank:
    """Prototype vectors, sharded by rows over the mesh."""

    def __init__(self, mesh, rows=96, dim=16):
        torch.manual_seed(1)
        self.mesh = mesh
        self.rank = mesh.get_rank()
        self.world = mesh.size()
        self.bank = distribute_tensor(torch.randn(rows, dim), mesh, [Shard(0)])
        self.hits = zeros(rows, device_mesh=mesh, placements=[Shard(0)])
        self.lock = threading.Lock()
        self.wake = threading.Event()
        threading.Thread(target=self._janitor, name="bank-janitor", daemon=True).start()

    def _janitor(self):
        while True:
            self.wake.wait()
            self.wake.clear()
            with self.lock:
                self.hits.to_local().mul_(0.5)
            time.sleep(0.5)

    def prototypes(self):
        return self.bank.full_tensor()

    def update(self, features, momentum=0.99):
        local = self.bank.to_local()
        nearest = torch.cdist(features, local).argmin(-1)
        with self.lock:
            local[nearest] = momentum * local[nearest] + (1 - momentum) * features
            self.hits.to_local()[nearest] += 1
        self.wake.set()

    def compact(self, turn):
        if turn % self.world == self.rank:
            with self.lock:
                for _ in range(20):
                    local = self.bank.to_local()
                    local.div_(local.norm(dim=-1, keepdim=True).clamp_min(1e-3))
                    time.sleep(0.15)
