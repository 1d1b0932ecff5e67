import argparse
import logging
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from model import TinyLM
from storage import AsyncUploader, Bucket

log = logging.getLogger("train")


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--run-dir", required=True)
    p.add_argument("--steps", type=int, default=200000)
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--ctx", type=int, default=64)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--save-interval", type=int, default=15)
    return p.parse_args()


def main():
    args = parse()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [rank{rank}] %(name)s: %(message)s")
    torch.manual_seed(1234)
    model = DDP(TinyLM(ctx=args.ctx))
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    uploader = AsyncUploader(Bucket(os.path.join(args.run_dir, "bucket"))) if rank == 0 else None
    gen = torch.Generator().manual_seed(100 + rank)

    t0, tokens = time.time(), 0
    for step in range(1, args.steps + 1):
        idx = torch.randint(0, 512, (args.batch, args.ctx + 1), generator=gen)
        logits = model(idx[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), idx[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        tokens += args.batch * args.ctx * dist.get_world_size()

        if rank == 0 and step % args.save_interval == 0 and not uploader.busy():
            path = os.path.join(args.run_dir, f"step{step}.pt")
            torch.save({"model": model.module.state_dict(), "optim": opt.state_dict(), "step": step}, path)
            uploader.submit(f"ckpt-{(step // args.save_interval) % 4}.pt", path)
        if rank == 0 and step % 20 == 0:
            dt = time.time() - t0
            log.info("step %d loss %.4f tgs %.0f", step, loss.item(), tokens / dt)
            t0, tokens = time.time(), 0

    if uploader is not None:
        uploader.drain()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
