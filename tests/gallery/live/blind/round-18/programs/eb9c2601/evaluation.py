import torch
import torch.distributed as dist


def _batches(cfg, seed):
    g = torch.Generator().manual_seed(seed)
    for _ in range(cfg.eval_iters):
        yield torch.randint(0, cfg.vocab, (cfg.batch, cfg.seq), generator=g)


def evaluate(schedule, cfg, rank, process_outputs=None):
    first, last = rank == 0, rank == cfg.stages - 1
    total = torch.zeros(1)
    for ids in _batches(cfg, seed=5):
        losses = []
        if first:
            schedule.eval(ids)
        elif last:
            schedule.eval(target=ids, losses=losses)
            total += torch.stack([x.detach() for x in losses]).mean()
        else:
            schedule.eval()

    collected = None
    if process_outputs is not None and last:
        collected = []
        for ids in _batches(cfg, seed=6):
            out = schedule.eval(target=ids, losses=[])
            collected.append(out.argmax(-1))

    total /= cfg.eval_iters
    dist.broadcast(total, src=cfg.stages - 1)
    if collected is not None:
        process_outputs(collected)
    return total.item()
