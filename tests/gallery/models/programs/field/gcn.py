"""A graph convolution net over a batch of graphs, pooled graph by graph."""
import torch
import torch.nn.functional as F
from torch import nn


class GCNConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.lin = nn.Linear(cin, cout, bias=False)
        self.bias = nn.Parameter(torch.zeros(cout))

    def forward(self, x, edge_index):
        n = x.shape[0]
        loops = torch.arange(n, device=x.device)
        src = torch.cat([edge_index[0], loops])
        dst = torch.cat([edge_index[1], loops])
        deg = torch.zeros(n, dtype=x.dtype, device=x.device).index_add(
            0, dst, torch.ones_like(dst, dtype=x.dtype)
        )
        norm = deg.rsqrt()[src] * deg.rsqrt()[dst]
        h = self.lin(x)
        out = torch.zeros_like(h).index_add(0, dst, h[src] * norm[:, None].to(h.dtype))
        return out + self.bias


class GraphNet(nn.Module):
    def __init__(self, cin=8, hidden=16, classes=3):
        super().__init__()
        self.conv1 = GCNConv(cin, hidden)
        self.conv2 = GCNConv(hidden, hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x, edge_index, batch, y):
        x = F.relu(self.conv1(x, edge_index))
        x = F.relu(self.conv2(x, edge_index))
        graphs = y.shape[0]
        total = torch.zeros(graphs, x.shape[1], dtype=x.dtype, device=x.device).index_add(0, batch, x)
        count = torch.bincount(batch, minlength=graphs).clamp(min=1)
        logits = self.head(total / count[:, None])
        return {"loss": F.cross_entropy(logits, y), "logits": logits}


def make():
    return GraphNet()


def graphs(rows):
    nodes = 5
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    edges = torch.cat([torch.cat([ring, ring.flip(0)], 1) + nodes * g for g in range(rows)], 1)
    return {
        "x": torch.randn(rows * nodes, 8),
        "edge_index": edges,
        "batch": torch.arange(rows).repeat_interleave(nodes),
        "y": torch.randint(0, 3, (rows,)),
    }
