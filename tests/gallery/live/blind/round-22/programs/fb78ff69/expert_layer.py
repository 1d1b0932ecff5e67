import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.nn.functional import all_to_all_single


class ExpertParallelFFN(nn.Module):
    """Top-1 routing, one expert per rank of the expert group, dropless."""

    def __init__(self, dim, hidden, group):
        super().__init__()
        self.group = group
        self.n_experts = dist.get_world_size(group)
        self.router = nn.Linear(dim, self.n_experts, bias=False)
        self.expert = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        gate = self.router(tokens).softmax(-1)
        weight, choice = gate.max(-1)
        order = choice.argsort(stable=True)
        sent = torch.bincount(choice, minlength=self.n_experts)
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent, group=self.group)
        n_in, n_out = sent.tolist(), received.tolist()

        dispatched = all_to_all_single(
            tokens.new_empty(sum(n_out), tokens.shape[1]), tokens[order].contiguous(), n_out, n_in, group=self.group
        )
        processed = self.expert(dispatched)
        returned = all_to_all_single(torch.empty_like(tokens), processed, n_in, n_out, group=self.group)
        combined = torch.empty_like(returned).index_copy(0, order, returned)
        return (combined * weight.unsqueeze(-1)).view_as(x)
