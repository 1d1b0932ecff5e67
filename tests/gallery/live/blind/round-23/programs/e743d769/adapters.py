import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor


class ShardedAdapter(nn.Module):
    """Low-rank adapter; its two factors are kept row-sharded over the data ranks."""

    def __init__(self, name, dim, rank, mesh):
        super().__init__()
        self.name = name
        self.mesh = mesh
        g = torch.Generator().manual_seed(sum(map(ord, name)))
        down = torch.randn(dim, rank, generator=g) * 0.02
        up = torch.zeros(dim, rank)
        self.down = nn.Parameter(distribute_tensor(down, mesh, [Shard(0)]))
        self.up = nn.Parameter(distribute_tensor(up, mesh, [Shard(0)]))

    def export(self):
        return {
            f"{self.name}.{k}": p.detach().full_tensor().clone()
            for k, p in (("down", self.down), ("up", self.up))
        }


class AdapterBank:
    """All adapters of the run. Every task has a communicator of its own, so that
    exports of different tasks can overlap."""

    def __init__(self, tasks, dim, rank):
        self.meshes = {
            t: DeviceMesh.from_group(dist.new_group(), "cpu", mesh_dim_names=(t,)) for t in tasks
        }
        self.pool = {t: ShardedAdapter(t, dim, rank, self.meshes[t]) for t in tasks}
        self.active = {}

    def __getitem__(self, task):
        if task not in self.active:
            self.active[task] = self.pool[task]
        return self.active[task]

    def export(self):
        state = {}
        for adapter in self.active.values():
            state.update(adapter.export())
        return state
