import argparse
import logging
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from packing import build_index, load_packed_index

torch.set_num_threads(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--refresh-every", type=int, default=1)
    p.add_argument("--cache-dir", default="cache")
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s rank{rank} %(name)s %(message)s")
    logging.getLogger("filelock").setLevel(logging.WARNING)
    log = logging.getLogger("finetune")
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.EmbeddingBag(2000, 32), nn.Linear(32, 8)))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if rank == 0:
        import os
        os.makedirs(args.cache_dir, exist_ok=True)
        build_index(os.path.join(args.cache_dir, "packed-v0.npy"), 0)
    dist.barrier()
    for epoch in range(args.epochs):
        index = load_packed_index(args.cache_dir, epoch // args.refresh_every)
        mine = index[rank::world][:160]
        for step in range(0, len(mine), 8):
            ids = torch.as_tensor(mine[step : step + 8]).view(-1, 2)
            loss = nn.functional.cross_entropy(model(ids), ids[:, 0] % 8)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.15)
            if rank == 0 and step % 40 == 0:
                log.info("epoch %d step %d loss %.4f", epoch, step // 8, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
