import torch
import torch.nn as nn


class DLRM(nn.Module):
    def __init__(self, num_dense, num_sparse, buckets=2000, dim=32, hidden=512):
        super().__init__()
        self.buckets = buckets
        self.tables = nn.ModuleList([nn.Embedding(buckets, dim) for _ in range(num_sparse)])
        self.bottom = nn.Sequential(nn.Linear(num_dense, hidden), nn.ReLU(), nn.Linear(hidden, dim))
        n = num_sparse + 1
        self.register_buffer("tri", torch.tril_indices(n, n, offset=-1), persistent=False)
        self.over = nn.Sequential(
            nn.Linear(dim + n * (n - 1) // 2, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1),
        )

    def forward(self, dense, sparse):
        d = self.bottom(dense)
        embs = [t(sparse[:, i] % self.buckets) for i, t in enumerate(self.tables)]
        x = torch.stack([d] + embs, dim=1)
        z = torch.bmm(x, x.transpose(1, 2))[:, self.tri[0], self.tri[1]]
        return self.over(torch.cat([d, z], dim=1)).squeeze(1)
