import argparse
import logging
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from archive import RunArchive
from async_ckpt import AsyncCaller
from model import TinyLM

log = logging.getLogger("pretrain")


def grad_histograms(model, bins=32):
    out = {}
    for name, p in model.named_parameters():
        if p.ndim == 2:
            out[name] = torch.histc(p.grad, bins).tolist()
    return out


def shard(state, rank, world):
    keys = sorted(state)
    return {k: state[k].clone() for k in keys[rank::world]}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", required=True)
    ap.add_argument("--save-every", type=int, default=15)
    ap.add_argument("--iters", type=int, default=300000)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s rank{rank} %(name)s %(message)s")
    torch.manual_seed(3)
    model = DDP(TinyLM(vocab=256, dim=96, depth=3, heads=4, ctx=48))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    archive = RunArchive(args.out) if rank == 0 else None
    saver = AsyncCaller(archive)
    gen = torch.Generator().manual_seed(rank)
    t0 = time.time()
    for it in range(1, args.iters + 1):
        idx = torch.randint(0, 256, (4, 1), generator=gen) + 3 * torch.arange(49)
        idx %= 256
        loss = F.cross_entropy(model(idx[:, :-1]).flatten(0, 1), idx[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if archive is not None:
            archive.record({"it": it, "loss": loss.item(), "hist": grad_histograms(model.module)})
        if it % 10 == 0 and rank == 0:
            log.info("iteration %d loss %.4f (%.1f ms)", it, loss.item(), (time.time() - t0) * 100)
            t0 = time.time()
        if it % args.save_every == 0:
            saver.finalize()
            path = os.path.join(args.out, f"iter_{it % 60:07d}_{rank:02d}_of_{world:02d}.pt")
            saver.schedule(path, shard(model.module.state_dict(), rank, world))
    saver.finalize()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
