import torch
import torch.distributed as dist


class CentralLoader:
    """Reads a loader on the main process and hands every rank its slice of each batch."""

    def __init__(self, loader):
        self.loader = loader
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()

    def _next(self, it):
        batches = []
        for _ in range(self.world):
            try:
                batches.append(next(it))
            except StopIteration:
                break
        return batches if len(batches) == self.world else None

    def __iter__(self):
        it = iter(self.loader) if self.rank == 0 else None
        while True:
            info = [None]
            if self.rank == 0:
                batches = self._next(it)
                info = [None if batches is None else [tuple(t.shape) for t in batches[0]]]
            dist.broadcast_object_list(info, src=0)
            if info[0] is None:
                return
            out = []
            for k, shape in enumerate(info[0]):
                buf = torch.empty(shape)
                parts = [b[k].float().contiguous() for b in batches] if self.rank == 0 else None
                dist.scatter(buf, parts, src=0)
                out.append(buf)
            yield out
