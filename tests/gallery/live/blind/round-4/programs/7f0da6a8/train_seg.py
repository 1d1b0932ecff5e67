import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from seg.evaluator import sliding_window_eval
from seg.util import tie_to_parent
from seg.volumes import validation, volume


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--eval-interval", type=int, default=100)
    args = ap.parse_args()
    tie_to_parent()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
                              nn.Conv2d(16, 1, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for it in range(1, 1_000_000):
        vol, gt = volume(it * 3 + rank)
        loss = nn.functional.binary_cross_entropy_with_logits(model(vol[:, None]), gt[:, None].float())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and it % 10 == 0:
            print(f"iter {it} loss {loss.item():.4f}")
        if it % args.eval_interval == 0:
            if rank == 0:
                iou, n, took = sliding_window_eval(model.module, validation())
                print(f"[eval] iter {it} iou {iou:.4f} ({n} slices, {took:.1f}s)")
            dist.barrier()


if __name__ == "__main__":
    main()
