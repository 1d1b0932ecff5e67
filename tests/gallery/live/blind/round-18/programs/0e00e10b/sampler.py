import torch


def token_batches(rank, world, epoch, budget=640):
    """Length-sorted buckets with about `budget` tokens each, dealt out to the ranks in turn."""
    g = torch.Generator().manual_seed(1234 + epoch)
    lengths = torch.randint(8, 65, (9000,), generator=g).sort().values.tolist()
    buckets, cur = [], []
    for n in lengths:
        if cur and (len(cur) + 1) * n > budget:
            buckets.append((len(cur), cur[-1]))
            cur = []
        cur.append(n)
    usable = len(buckets) // world * world
    order = torch.randperm(usable // world, generator=g).tolist()
    for i in order:
        yield buckets[i * world + rank]
