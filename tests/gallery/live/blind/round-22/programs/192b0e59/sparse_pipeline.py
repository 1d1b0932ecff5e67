"""Row-sharded embedding with the id exchange of batch n+1 overlapped with batch n."""
import torch
import torch.distributed as dist

from session_feed import NUM_USERS


class ShardedTable:
    def __init__(self, group, dim=16):
        self.group = group
        self.world = dist.get_world_size(group)
        self.index = dist.get_rank(group)
        self.rows = NUM_USERS // self.world
        self.weight = torch.randn(self.rows, dim) * 0.05

    def input_dist(self, ids):
        """Send every id to the shard that owns its row; look up and send the rows back."""
        owner = ids % self.world
        order = torch.argsort(owner, stable=True)
        counts = torch.bincount(owner, minlength=self.world)
        incoming = torch.empty_like(counts)
        dist.all_to_all_single(incoming, counts, group=self.group)
        got = torch.empty(int(incoming.sum()), dtype=ids.dtype)
        dist.all_to_all_single(got, ids[order], incoming.tolist(), counts.tolist(), group=self.group)
        rows = self.weight[(got // self.world) % self.rows]
        back = torch.empty(len(ids), rows.shape[1])
        dist.all_to_all_single(back, rows.contiguous(), counts.tolist(), incoming.tolist(), group=self.group)
        out = torch.empty_like(back)
        out[order] = back
        return out


class TrainPipelineSparse:
    def __init__(self, feed, table, tower, optimizer, replicate_group):
        self.feed, self.table, self.tower = feed, table, tower
        self.optimizer, self.replicate_group = optimizer, replicate_group
        self.pending = None

    def _start_sparse(self):
        ids, dense, label = self.feed.next()
        self.pending = (self.table.input_dist(ids), dense, label)

    def _reduce_dense(self):
        n = dist.get_world_size(self.replicate_group)
        for p in self.tower.parameters():
            dist.all_reduce(p.grad, group=self.replicate_group)
            p.grad /= n

    def progress(self, compute):
        if self.pending is None:
            self._start_sparse()
        emb, dense, label = self.pending
        self.pending = None
        logit = self.tower(torch.cat([emb, dense], 1)).squeeze(1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logit, label)
        self.optimizer.zero_grad()
        loss.backward()
        compute()
        if self.feed.has_ready():
            self._start_sparse()
        self._reduce_dense()
        self.optimizer.step()
        if self.pending is None:
            self._start_sparse()
        return loss.item()
