import argparse
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from det import comm
from det.data import Harbor, collate
from det.fcos import Fcos, fcos_losses


def batches(loader, sampler):
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-iter", type=int, default=20000)
    parser.add_argument("--ims-per-gpu", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    dist.init_process_group("gloo")
    comm.stats_group()

    data = Harbor()
    sampler = DistributedSampler(data, shuffle=True, seed=args.seed)
    loader = DataLoader(data, args.ims_per_gpu, sampler=sampler, collate_fn=collate, drop_last=True)
    model = DDP(Fcos())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    start = time.time()
    for it, (images, boxes) in enumerate(batches(loader, sampler)):
        if it >= args.max_iter:
            break
        losses = fcos_losses(model(images), boxes)
        total = sum(losses.values())
        optimizer.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if comm.is_main() and it % 20 == 0:
            text = "  ".join(f"{k}: {v.item():.3f}" for k, v in losses.items())
            print(f"iter: {it}  {text}  time: {time.time() - start:.1f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
