import os

import torch.distributed as dist


class Topology:
    """Ranks are laid out node by node; the first rank of each node talks to the other nodes."""

    def __init__(self):
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()
        self.per_node = int(os.environ["RANKS_PER_NODE"])
        self.node = self.rank // self.per_node
        self.num_nodes = self.world // self.per_node
        self.intra = None
        for n in range(self.num_nodes):
            members = list(range(n * self.per_node, (n + 1) * self.per_node))
            group = dist.new_group(members)
            if n == self.node:
                self.intra = group
        self.leader = self.node * self.per_node
        self.is_leader = self.rank == self.leader
        self.inter = None
        if self.is_leader:
            self.inter = dist.new_group([n * self.per_node for n in range(self.num_nodes)])
