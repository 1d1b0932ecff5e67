import pickle

import torch
import torch.distributed as dist


def broadcast_pyobj(data, rank, group, src):
    """Share a list of python objects from the leader with its group."""
    if rank == src:
        blob = torch.frombuffer(bytearray(pickle.dumps(data)), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
        size = torch.tensor([blob.numel()], dtype=torch.long)
        dist.broadcast(size, src=src, group=group)
        if size.item() > 0:
            dist.broadcast(blob, src=src, group=group)
        return data
    size = torch.tensor([0], dtype=torch.long)
    dist.broadcast(size, src=src, group=group)
    if size.item() == 0:
        return []
    blob = torch.empty(size.item(), dtype=torch.uint8)
    dist.broadcast(blob, src=src, group=group)
    return pickle.loads(blob.numpy().tobytes())
