import argparse
import logging
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from data import PAD, VOCAB, Records, collate
from evaluate import run_generation_eval
from model import CharLM

log = logging.getLogger("sft")


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=20000)
    p.add_argument("--eval-every", type=int, default=100)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--lr", type=float, default=2e-3)
    return p.parse_args()


def main():
    args = parse()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [rank {rank}] %(message)s")
    torch.manual_seed(0)

    mesh = init_device_mesh("cpu", (world,))
    model = CharLM(len(VOCAB))
    for blk in model.blocks:
        fully_shard(blk, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)

    train = Records(12000, seed=1)
    held_out = Records(12, seed=2)
    sampler = DistributedSampler(train, world, rank, drop_last=True)
    loader = DataLoader(train, args.batch_size, sampler=sampler, collate_fn=collate, drop_last=True)

    step, epoch, t0 = 0, 0, time.time()
    while step < args.steps:
        sampler.set_epoch(epoch)
        for ids in loader:
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=PAD)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad(set_to_none=True)
            step += 1
            if step % 10 == 0 and rank == 0:
                log.info("step %d loss %.3f %.1f ms/step", step, loss.item(), (time.time() - t0) * 100)
            if step % 10 == 0:
                t0 = time.time()
            if step % args.eval_every == 0:
                metrics = run_generation_eval(model, held_out, rank, world, step)
                if rank == 0:
                    log.info("eval step %d %s", step, metrics)
            if step >= args.steps:
                break
        epoch += 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
