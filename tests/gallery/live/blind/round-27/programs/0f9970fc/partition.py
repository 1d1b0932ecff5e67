import torch

N_PARTS = 3


class PartitionBook:
    def __init__(self, n_nodes):
        self.bounds = torch.linspace(0, n_nodes, N_PARTS + 1).long()

    def owner(self, nodes):
        return torch.bucketize(nodes, self.bounds[1:], right=True).clamp(max=N_PARTS - 1)

    def local_range(self, part):
        return int(self.bounds[part]), int(self.bounds[part + 1])


def build_graph(n_nodes=3000, degree=10, seed=5):
    """Community graph: most edges stay inside the part of their node."""
    gen = torch.Generator().manual_seed(seed)
    book = PartitionBook(n_nodes)
    owner = book.owner(torch.arange(n_nodes))
    low = book.bounds[owner].unsqueeze(1)
    size = (book.bounds[owner + 1] - book.bounds[owner]).unsqueeze(1)
    inside = low + (torch.rand(n_nodes, degree, generator=gen) * size).long()
    anywhere = torch.randint(0, n_nodes, (n_nodes, degree), generator=gen)
    crossing = torch.rand(n_nodes, degree, generator=gen) < 0.02
    neighbors = torch.where(crossing, anywhere, inside)
    labels = (torch.arange(n_nodes) * 7 // 13) % 6
    labelled = torch.rand(n_nodes, generator=gen) < torch.tensor([0.405, 0.75, 0.05])[owner]
    return book, neighbors, labels, labelled.nonzero().squeeze(1)


def node_split(nodes, rank, world):
    """Equal shares of the training nodes, in the order of the partition book."""
    share = len(nodes) // world
    return nodes[rank * share:(rank + 1) * share]
