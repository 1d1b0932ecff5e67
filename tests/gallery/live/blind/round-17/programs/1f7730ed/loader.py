import multiprocessing as mp

import torch

from graph import collate


class NeighborLoader:
    """Samples in the calling process."""

    def __init__(self, graph, idx, batch_size, fanouts, shuffle=True):
        self.graph, self.idx, self.bs, self.fanouts, self.shuffle = graph, idx, batch_size, fanouts, shuffle

    def __len__(self):
        return len(self.idx) // self.bs

    def __iter__(self):
        order = self.idx[torch.randperm(len(self.idx))] if self.shuffle else self.idx
        for i in range(len(self)):
            yield collate(self.graph, order[i * self.bs:(i + 1) * self.bs], self.fanouts)


def _produce(q, graph, idx, bs, fanouts):
    for part in idx.split(bs):
        b = collate(graph, part, fanouts)
        q.put(tuple(t.numpy() for t in (b.seeds, b.x0, b.x1, b.x2, b.y)))
    q.put(None)


class PrefetchLoader:
    """Samples ahead in a process of its own; the graph is shared with it by fork."""

    def __init__(self, graph, idx, batch_size, fanouts, depth=4):
        self.args = (graph, idx, batch_size, fanouts)
        self.depth = depth

    def __iter__(self):
        ctx = mp.get_context("fork")
        q = ctx.Queue(self.depth)
        p = ctx.Process(target=_produce, args=(q, *self.args), daemon=True)
        p.start()
        while True:
            item = q.get()
            if item is None:
                break
            yield [torch.from_numpy(a) for a in item]
        p.join()
