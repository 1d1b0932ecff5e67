"""Graph attention over padded graphs with a dense adjacency."""
import torch
import torch.nn.functional as F
from torch import nn


class GATLayer(nn.Module):
    def __init__(self, cin, cout, heads=2):
        super().__init__()
        self.heads, self.dim = heads, cout // heads
        self.lin = nn.Linear(cin, cout, bias=False)
        self.att_src = nn.Parameter(torch.randn(heads, self.dim) * 0.3)
        self.att_dst = nn.Parameter(torch.randn(heads, self.dim) * 0.3)
        self.bias = nn.Parameter(torch.zeros(cout))

    def forward(self, x, adj):
        b, n, _ = x.shape
        h = self.lin(x).view(b, n, self.heads, self.dim)
        src = (h * self.att_src).sum(-1)
        dst = (h * self.att_dst).sum(-1)
        scores = F.leaky_relu(dst[:, :, None] + src[:, None, :], 0.2)
        scores = scores.masked_fill(~adj[..., None], torch.finfo(scores.dtype).min)
        alpha = scores.softmax(dim=2)
        out = torch.einsum("bijh,bjhd->bihd", alpha, h)
        return out.reshape(b, n, -1) + self.bias


class GAT(nn.Module):
    def __init__(self, features=6, hidden=16):
        super().__init__()
        self.layer1 = GATLayer(features, hidden)
        self.layer2 = GATLayer(hidden, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, nodes, adjacency, node_mask):
        eye = torch.eye(nodes.shape[1], dtype=torch.bool, device=nodes.device)
        adj = (adjacency & node_mask[:, None, :]) | eye
        x = F.elu(self.layer1(nodes, adj))
        x = F.elu(self.layer2(x, adj))
        weight = node_mask[..., None].to(x.dtype)
        pooled = (x * weight).sum(1) / weight.sum(1).clamp(min=1)
        return self.out(pooled).squeeze(-1)


def gat():
    return GAT()


def batch(rows, length=9):
    adjacency = torch.rand(rows, length, length) < 0.4
    return {
        "nodes": torch.randn(rows, length, 6),
        "adjacency": adjacency | adjacency.transpose(1, 2),
        "node_mask": torch.ones(rows, length, dtype=torch.bool),
    }
