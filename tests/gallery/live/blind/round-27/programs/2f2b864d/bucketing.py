"""Length bucketing with a token budget for unpaired utterances."""
import random

import torch
from torch.utils.data import BatchSampler


class BucketizeBatchSampler(BatchSampler):
    def __init__(self, lengths, num_buckets, max_token_count, shuffle=True, drop_last=False):
        self.lengths = lengths
        self.max_token_count = max_token_count
        self.shuffle = shuffle
        self.drop_last = drop_last
        lo, hi = min(lengths), max(lengths)
        step = (hi - lo) / num_buckets
        edges = torch.tensor([lo + step * i for i in range(1, num_buckets)])
        self.buckets = {}
        for idx, length in enumerate(lengths):
            bucket = int(torch.bucketize(torch.tensor(float(length)), edges))
            self.buckets.setdefault(bucket, []).append(idx)
        self._update_iter_list()

    def _update_iter_list(self):
        if self.shuffle:
            for bucket in self.buckets.values():
                random.shuffle(bucket)
        self.iter_list = []
        batch, tokens = [], 0
        for key in sorted(self.buckets):
            for idx in self.buckets[key]:
                if tokens + self.lengths[idx] > self.max_token_count and batch:
                    self.iter_list.append(batch)
                    batch, tokens = [], 0
                batch.append(idx)
                tokens += self.lengths[idx]
        if batch and not self.drop_last:
            self.iter_list.append(batch)
        if self.shuffle:
            random.shuffle(self.iter_list)

    def __iter__(self):
        return iter(self.iter_list)

    def __len__(self):
        return len(self.iter_list)


class DistributedBatchSampler(torch.utils.data.Sampler):
    """Hands batch k of the bucketized list to rank k % num_replicas."""

    def __init__(self, batch_sampler, num_replicas, rank):
        self.batches = list(batch_sampler)
        self.num_replicas, self.rank = num_replicas, rank
        extra = -len(self.batches) % num_replicas
        self.batches += self.batches[:extra]

    def __iter__(self):
        return iter(self.batches[self.rank::self.num_replicas])

    def __len__(self):
        return len(self.batches) // self.num_replicas
