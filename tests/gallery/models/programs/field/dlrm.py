"""DLRM: embedding bags for sparse features, an MLP for dense ones, pairwise products."""
import torch
import torch.nn.functional as F
from torch import nn


def mlp(*sizes):
    layers = []
    for place, size in enumerate(sizes[1:]):
        layers += [nn.Linear(sizes[place], size), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class DLRM(nn.Module):
    def __init__(self, tables=(40, 30, 20), dim=8, dense=5):
        super().__init__()
        self.embs = nn.ModuleList(nn.EmbeddingBag(n, dim, mode="sum") for n in tables)
        self.bottom = mlp(dense, 16, dim)
        pairs = (len(tables) + 1) * len(tables) // 2
        self.top = mlp(dim + pairs, 16, 1)

    def forward(self, dense, indices, offsets, click):
        x = self.bottom(dense)
        bags = [emb(i, o) for emb, i, o in zip(self.embs, indices, offsets)]
        t = torch.stack([x, *bags], dim=1)
        z = torch.bmm(t, t.transpose(1, 2))
        li, lj = torch.tril_indices(t.shape[1], t.shape[1], offset=-1)
        p = self.top(torch.cat([x, z[:, li, lj]], dim=1)).squeeze(1)
        return F.binary_cross_entropy_with_logits(p, click), p


def dlrm():
    return DLRM()


def clicks(batch_size):
    bag = 3
    return (
        torch.rand(batch_size, 5),
        [torch.randint(0, n, (batch_size * bag,)) for n in (40, 30, 20)],
        [torch.arange(0, batch_size * bag, bag) for _ in range(3)],
        torch.randint(0, 2, (batch_size,)).float(),
    )
