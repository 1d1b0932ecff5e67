import time

import torch
import torch.distributed as dist


def documents(rank, world, total=150):
    """Whole documents; each rank takes every world-th one, long ones are scored in windows."""
    for i in range(rank, total, world):
        yield i, 3 + (i * 7) % 5


@torch.no_grad()
def perplexity(model, vocab, rank, world):
    model.eval()
    table = model.head.weight.full_tensor().detach()
    emb = model.embed.weight.full_tensor().detach()
    total = torch.zeros(2)
    for i, windows in documents(rank, world):
        ids = (torch.arange(windows * 16 + 1) * (1 + i % 3)) % vocab
        logits = emb[ids[:-1]] @ table.T
        total[0] += torch.nn.functional.cross_entropy(logits, ids[1:], reduction="sum")
        total[1] += len(ids) - 1
        time.sleep(0.035 * windows)
    dist.all_reduce(total)
    model.train()
    return (total[0] / total[1]).exp().item()
