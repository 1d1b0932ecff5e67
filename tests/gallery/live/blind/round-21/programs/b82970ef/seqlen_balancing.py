"""Packing of variable-length rollouts into micro-batches under a token budget."""
import heapq
import math
from dataclasses import dataclass

import torch


@dataclass
class Rollout:
    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    advantages: torch.Tensor


def balanced_partitions(seqlens, k):
    heap = [(0, i, []) for i in range(k)]
    heapq.heapify(heap)
    for idx in sorted(range(len(seqlens)), key=lambda i: -seqlens[i]):
        total, i, members = heapq.heappop(heap)
        heapq.heappush(heap, (total + seqlens[idx], i, members + [idx]))
    return [members for _, _, members in sorted(heap, key=lambda h: h[1]) if members]


def prepare_dynamic_batch(batch: Rollout, max_token_len: int):
    seqlens = batch.attention_mask.sum(dim=1).tolist()
    num_micro_batches = max(1, math.ceil(sum(seqlens) / max_token_len))
    micro_batches = []
    for members in balanced_partitions(seqlens, num_micro_batches):
        width = max(seqlens[i] for i in members)
        rows = torch.tensor(members)
        micro_batches.append(Rollout(batch.input_ids[rows, :width], batch.attention_mask[rows, :width],
                                     batch.advantages[rows]))
    return micro_batches
