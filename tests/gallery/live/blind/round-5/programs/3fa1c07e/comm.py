import torch
import torch.distributed as dist


def push(items):
    """items: list of (tensor, peer); one after the other so the wire format stays simple"""
    for t, peer in items:
        dist.send(t.detach().contiguous(), dst=peer)


def pull(shape, peers):
    out = []
    for p in peers:
        buf = torch.empty(shape)
        dist.recv(buf, src=p)
        out.append(buf)
    return out
