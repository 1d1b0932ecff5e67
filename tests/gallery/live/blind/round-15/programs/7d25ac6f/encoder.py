import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset


class BiEncoder(nn.Module):
    def __init__(self, vocab=800, dim=128):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 256, batch_first=True, dropout=0.1)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.out = nn.Linear(dim, dim)

    def encode(self, ids):
        return self.out(self.encoder(self.embed(ids)).mean(1))

    def forward(self, query, passage, return_loss=True):
        q = F.normalize(self.encode(query), dim=-1)
        p = F.normalize(self.encode(passage), dim=-1)
        scores = q @ p.T * 20
        return {"loss": F.cross_entropy(scores, torch.arange(len(q))), "scores": scores}


class PairDataset(Dataset):
    def __init__(self, n, seed, length=16, overlap=5):
        g = torch.Generator().manual_seed(seed)
        self.query = torch.randint(0, 800, (n, length), generator=g)
        self.passage = torch.randint(0, 800, (n, length), generator=g)
        self.passage[:, :overlap] = self.query[:, :overlap]

    def __len__(self):
        return len(self.query)

    def __getitem__(self, i):
        return {"query": self.query[i], "passage": self.passage[i]}
