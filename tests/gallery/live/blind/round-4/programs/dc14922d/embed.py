import torch
import torch.nn as nn


class Embedder:
    def __init__(self, dim=256):
        self.table = nn.Embedding(4096, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 1024), nn.GELU(), nn.Linear(1024, dim)).eval()

    @torch.no_grad()
    def encode(self, ids):
        x = self.table(torch.as_tensor(ids) % 4096)
        x = self.mlp(x.unsqueeze(1).repeat(1, 64, 1))
        return torch.nn.functional.normalize(x.mean(1), dim=-1)

    def __call__(self, batch):
        e = self.encode(batch["query"]) * self.encode(batch["doc"])
        return {"emb": e.tolist()}
