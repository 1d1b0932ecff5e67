import argparse
import gc
import logging
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from checkpoint import CheckpointManager
from model import Transformer

logger = logging.getLogger("train")
VOCAB, CTX = 384, 64


def stream(seed, batch):
    g = torch.Generator().manual_seed(seed)
    while True:
        start = torch.randint(0, VOCAB, (batch, 1), generator=g)
        stride = torch.randint(1, 6, (batch, 1), generator=g)
        x = (start + stride * torch.arange(CTX + 1)) % VOCAB
        yield x[:, :-1], x[:, 1:]


def loss_fn(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


@torch.no_grad()
def validate(model, rank, batches=30):
    model.eval()
    data = stream(9000 + rank, 8)
    total = torch.zeros(1)
    for _ in range(batches):
        total += loss_fn(model, *next(data))
    dist.all_reduce(total, op=dist.ReduceOp.SUM)
    model.train()
    return total.item() / batches / dist.get_world_size()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dump-folder", required=True)
    ap.add_argument("--steps", type=int, default=1000000)
    args = ap.parse_args()
    torch.set_num_threads(1)
    gc.disable()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [{rank}] %(name)s: %(message)s")
    folder = [args.dump_folder]
    dist.broadcast_object_list(folder, src=0)
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(0)
    model = Transformer(vocab=VOCAB, dim=128, depth=4, heads=4, ctx=CTX)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    ckpt = CheckpointManager(folder[0], interval=150)
    data = stream(rank, 4)
    t0 = time.time()
    for step in range(1, args.steps + 1):
        if step % 50 == 0:
            gc.collect(1)
        loss = loss_fn(model, *next(data))
        opt.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 20 == 0:
            val = norm.full_tensor().item()
            if rank == 0:
                logger.info("step %d loss %.4f grad_norm %.3f %.1f ms", step, loss.item(), val, (time.time() - t0) * 50)
            t0 = time.time()
        ckpt.save(model, opt, step)
        if step % 200 == 0:
            v = validate(model, rank)
            if rank == 0:
                logger.info("step %d validation %.4f", step, v)
    ckpt.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
