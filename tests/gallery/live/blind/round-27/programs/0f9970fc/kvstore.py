import time

import torch
import torch.distributed.rpc as rpc

LINK_LATENCY = 0.03
ROWS_PER_MESSAGE = 2
_local = {}


def load_part(rank, book, dim=16):
    start, stop = book.local_range(rank)
    gen = torch.Generator().manual_seed(100 + rank)
    _local["start"] = start
    _local["rows"] = torch.randn(stop - start, dim, generator=gen)


def pull_rows(ids):
    time.sleep(LINK_LATENCY)
    return _local["rows"][ids - _local["start"]]


class FeatureClient:
    def __init__(self, rank, book):
        self.rank = rank
        self.book = book

    def gather(self, nodes):
        nodes, inverse = nodes.unique(return_inverse=True)
        owner = self.book.owner(nodes)
        out = torch.empty(len(nodes), _local["rows"].shape[1])
        mine = owner == self.rank
        out[mine] = _local["rows"][nodes[mine] - _local["start"]]
        for part in owner[~mine].unique().tolist():
            index = (owner == part).nonzero().squeeze(1)
            for chunk in index.split(ROWS_PER_MESSAGE):
                out[chunk] = rpc.rpc_sync(f"part{part}", pull_rows, args=(nodes[chunk],))
        return out[inverse]
