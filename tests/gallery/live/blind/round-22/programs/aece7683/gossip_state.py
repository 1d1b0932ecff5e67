"""Pairwise parameter averaging over a rotating hypercube."""
import math

import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class GossipState:
    def __init__(self, rank, world_size):
        self.rank = rank
        self.period = int(math.log2(world_size))
        self.iteration = 0

    def advance(self):
        peer = self.rank ^ (1 << (self.iteration % self.period))
        tag = self.iteration
        self.iteration += 1
        return peer, tag


def exchange(vec, rank, peer, tag):
    other = torch.empty_like(vec)
    if rank < peer:
        dist.send(vec, dst=peer, tag=tag)
        dist.recv(other, src=peer, tag=tag)
    else:
        dist.recv(other, src=peer, tag=tag)
        dist.send(vec, dst=peer, tag=tag)
    return other


@torch.no_grad()
def mix(model, rank, peer, tag):
    vec = parameters_to_vector(model.parameters())
    other = exchange(vec, rank, peer, tag)
    vector_to_parameters((vec + other) / 2, model.parameters())
