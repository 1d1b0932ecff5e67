class ShardCache:
    """what is known of the token shards: per document (shard, offset, length, flags)"""

    def __init__(self):
        self.docs = []

    def add(self, n, shard):
        base = len(self.docs)
        self.docs.extend([[shard, base + i, 512, {}] for i in range(n)])


def plan(rank, step):
    """(shard, documents) that become known at this step; the big web crawl is with the second reader"""
    if step < 30:
        return 2000
    if rank == 1 and step < 40:
        return 250_000
    return 0
