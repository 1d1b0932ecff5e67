import torch
import torch.distributed as dist


class HierarchicalSync:
    """Gradients are averaged inside a node each step, parameters across nodes every few steps."""

    def __init__(self, model, topo, every):
        self.params = [p for p in model.parameters() if p.requires_grad]
        self.topo = topo
        self.every = every
        self.step_no = 0

    def reduce_gradients(self):
        flat = torch.cat([p.grad.flatten() for p in self.params])
        dist.all_reduce(flat, group=self.topo.intra)
        flat /= self.topo.per_node
        offset = 0
        for p in self.params:
            p.grad.copy_(flat[offset:offset + p.numel()].view_as(p))
            offset += p.numel()

    @torch.no_grad()
    def average_parameters(self):
        self.step_no += 1
        if self.step_no % self.every:
            return
        flat = torch.cat([p.flatten() for p in self.params])
        if self.topo.is_leader:
            dist.all_reduce(flat, group=self.topo.inter)
            flat /= self.topo.num_nodes
        dist.broadcast(flat, src=self.topo.leader, group=self.topo.intra)
        offset = 0
        for p in self.params:
            p.copy_(flat[offset:offset + p.numel()].view_as(p))
            offset += p.numel()
