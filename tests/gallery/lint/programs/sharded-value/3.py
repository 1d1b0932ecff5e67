import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor


def build(rows):
    mesh = init_device_mesh("cuda", (8,))
    table = distribute_tensor(rows, mesh, [Shard(0)])
    broken = torch.isnan(table).any()
    if broken:
        raise ValueError("the table holds nan")
    return table
