import torch
from torch import nn
import torch.nn.functional as F

from aux_tracker import tracker


class DenseBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class MoEBlock(nn.Module):
    def __init__(self, dim, layer_idx, num_experts=4):
        super().__init__()
        self.layer_idx = layer_idx
        self.num_experts = num_experts
        self.norm = nn.LayerNorm(dim)
        self.router = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(num_experts))

    def forward(self, x):
        h = self.norm(x)
        logits = self.router(h)
        probs = logits.softmax(-1)
        top_p, top_i = probs.max(-1)
        load = F.one_hot(top_i, self.num_experts).float().mean((0, 1))
        tracker.record("load_balancing_loss", self.layer_idx, (load * probs.mean((0, 1))).sum() * self.num_experts)
        tracker.record("z_loss", self.layer_idx, logits.logsumexp(-1).pow(2).mean())
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            out = out + expert(h) * (top_p * (top_i == i)).unsqueeze(-1)
        return x + out


class StageModule(nn.Module):
    def __init__(self, args, stage):
        super().__init__()
        per_stage = args.layers // args.stages
        self.embed = nn.Embedding(args.vocab, args.dim) if stage == 0 else None
        self.layers = nn.ModuleList()
        for idx in range(stage * per_stage, (stage + 1) * per_stage):
            if idx < args.first_k_dense:
                self.layers.append(DenseBlock(args.dim))
            else:
                self.layers.append(MoEBlock(args.dim, idx))
        self.head = nn.Linear(args.dim, args.vocab) if stage == args.stages - 1 else None

    def forward(self, x):
        if self.embed is not None:
            x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x) if self.head is not None else x
