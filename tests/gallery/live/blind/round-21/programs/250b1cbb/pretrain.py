import argparse
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from sharded_shampoo import ShardedShampoo
from vlm import TinyVLM


def make_batch(gen, with_images, batch=8, seq=24):
    ids = torch.randint(0, 256, (batch, seq + 1), generator=gen)
    patches = torch.randn(batch, 4, 24, generator=gen) if with_images else None
    return ids[:, :-1], ids[:, 1:], patches


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stage1-steps", type=int, default=100)
    parser.add_argument("--total-steps", type=int, default=1000)
    args = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    opt_group = dist.new_group(timeout=timedelta(hours=1))
    net = TinyVLM()
    model = DDP(net)
    optimizer = ShardedShampoo(net.text_parameters(), lr=2e-3, group=opt_group)
    gen = torch.Generator().manual_seed(40 + rank)
    for step in range(args.total_steps):
        if step == args.stage1_steps:
            for p in net.vision_parameters():
                p.requires_grad_(True)
            model = DDP(net)
            optimizer.add_param_group({"params": net.vision_parameters(), "lr": 5e-4})
            if rank == 0:
                print(f"step {step}: stage 2, image-text batches", flush=True)
        ids, labels, patches = make_batch(gen, with_images=step >= args.stage1_steps)
        loss = F.cross_entropy(model(ids, patches).flatten(0, 1), labels.flatten())
        loss.backward()
        time.sleep(0.1)
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
