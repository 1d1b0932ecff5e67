import torch
import torch.distributed as dist
import torch.nn.functional as F


class TrainPipeline:
    """Distributes the input of the next batch before the current one is trained."""

    def __init__(self, table, dense, opt, world):
        self.table, self.dense, self.opt, self.world = table, dense, opt, world
        self._ahead = None

    def _start(self, it):
        batch = next(it, None)
        if batch is None:
            return None
        ids, label = batch
        return self.table.input_dist(ids), label

    def progress(self, it):
        if self._ahead is None:
            self._ahead = self._start(it)
        if self._ahead is None:
            raise StopIteration
        ctx, label = self._ahead
        self._ahead = self._start(it)
        emb = self.table.lookup(ctx)
        loss = F.binary_cross_entropy_with_logits(self.dense(emb.mean(1)).squeeze(1), label)
        self.opt.zero_grad()
        loss.backward()
        self.table.update(ctx, emb.grad)
        for p in self.dense.parameters():
            dist.all_reduce(p.grad)
            p.grad /= self.world
        self.opt.step()
        return loss.item()
