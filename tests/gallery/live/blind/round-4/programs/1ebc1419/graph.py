import random

import torch


class Partition:
    def __init__(self, nodes, avg_degree, seeds, seed):
        self.n, self.seeds = nodes, seeds
        self.rng = random.Random(seed)
        self.adj = [[self.rng.randrange(nodes) for _ in range(self.rng.randint(1, 2 * avg_degree))]
                    for _ in range(nodes)]
        g = torch.Generator().manual_seed(seed)
        self.feat = torch.randn(nodes, 64, generator=g)
        self.label = torch.randint(0, 8, (nodes,), generator=g)

    def edges(self):
        return sum(len(a) for a in self.adj)

    def two_hop(self, v):
        seen = {}
        for u in self.adj[v]:
            for w in self.adj[u]:
                seen[w] = seen.get(w, 0) + 1
        return seen

    def sample_minibatch(self):
        ids = [self.rng.randrange(self.n) for _ in range(self.seeds)]
        aggr = []
        for v in ids:
            hood = self.two_hop(v)
            idx = torch.tensor(list(hood))
            w = torch.tensor([float(hood[int(i)]) for i in idx])
            aggr.append((self.feat[idx] * w[:, None]).sum(0) / w.sum())
        ids = torch.tensor(ids)
        return self.feat[ids], torch.stack(aggr), self.label[ids]
