import logging
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

from amp import LossScaler
from model import TinyLM
from sharded import ShardedOptimizer

log = logging.getLogger("pretrain")


def batches(rank, vocab, batch, ctx):
    g = torch.Generator().manual_seed(1000 + rank)
    while True:
        start = torch.randint(0, vocab, (batch, 1), generator=g)
        stride = torch.randint(1, 5, (batch, 1), generator=g)
        yield (start + stride * torch.arange(ctx + 1)) % vocab


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [{rank}] %(message)s")
    torch.manual_seed(0)
    model = TinyLM(vocab=256, dim=96, depth=3, heads=4, ctx=48)
    optimizer = ShardedOptimizer(model.parameters(), torch.optim.AdamW, lr=3e-4)
    optimizer.sync_params()
    scaler = LossScaler()
    data = batches(rank, 256, 4, 48)

    t0 = time.time()
    for step in range(1, 200001):
        idx = next(data)
        loss = F.cross_entropy(model(idx[:, :-1]).flatten(0, 1), idx[:, 1:].flatten())
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        optimizer.reduce_gradients()
        scaler.step(optimizer)
        if rank == 0 and step % 25 == 0:
            log.info("step %d loss %.4f scale %g %.3fs/it", step, loss.item(), scaler.scale_value, (time.time() - t0) / 25)
            t0 = time.time()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
