import torch


class CSRGraph:
    def __init__(self, num_nodes, avg_degree, feat_dim, classes, seed=0):
        g = torch.Generator().manual_seed(seed)
        deg = torch.randint(1, 2 * avg_degree, (num_nodes,), generator=g)
        self.indptr = torch.cat([torch.zeros(1, dtype=torch.long), deg.cumsum(0)])
        self.indices = torch.randint(0, num_nodes, (int(self.indptr[-1]),), generator=g)
        self.y = torch.randint(0, classes, (num_nodes,), generator=g)
        centers = torch.randn(classes, feat_dim, generator=g)
        self.x = centers[self.y] + torch.randn(num_nodes, feat_dim, generator=g)
        perm = torch.randperm(num_nodes, generator=g)
        self.train_idx, self.val_idx = perm[: num_nodes // 2], perm[num_nodes // 2: num_nodes // 2 + num_nodes // 8]

    def sample(self, nodes, fanout):
        start, deg = self.indptr[nodes], self.indptr[nodes + 1] - self.indptr[nodes]
        pick = (torch.rand(len(nodes), fanout) * deg.unsqueeze(1)).long()
        return self.indices[start.unsqueeze(1) + pick]


class MiniBatch:
    __slots__ = ("seeds", "x0", "x1", "x2", "y")

    def __init__(self, seeds, x0, x1, x2, y):
        self.seeds, self.x0, self.x1, self.x2, self.y = seeds, x0, x1, x2, y


def collate(graph, seeds, fanouts):
    n1 = graph.sample(seeds, fanouts[0])
    n2 = graph.sample(n1.flatten(), fanouts[1])
    x2 = graph.x[n2].mean(1).view(len(seeds), fanouts[0], -1)
    return MiniBatch(seeds, graph.x[seeds], graph.x[n1], x2, graph.y[seeds])
