import argparse
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from forge.checkpoint import CheckpointManager
from forge.model import TinyLM
from forge.runtime import setup, tie_to_parent


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--ckpt-every", type=int, default=50)
    p.add_argument("--out", default="outputs")
    args = p.parse_args()

    tie_to_parent()
    rank, world, log = setup()
    mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("dp",))
    torch.manual_seed(1234)
    model = TinyLM(vocab=512, dim=96, depth=4)
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optim = torch.optim.AdamW(model.parameters(), lr=3e-4)
    ckpt = CheckpointManager(args.out, keep=2, log=log)
    log.info("model sharded over %d ranks, starting", world)

    gen = torch.Generator().manual_seed(rank)
    t0 = time.time()
    for step in range(1, args.steps + 1):
        tokens = torch.randint(0, 512, (8, 65), generator=gen)
        loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        optim.step()
        optim.zero_grad()
        if rank == 0 and step % 4 == 0:
            log.info("step %d loss %.4f (%.2f s/it)", step, loss.item(), (time.time() - t0) / step)
        if step % args.ckpt_every == 0:
            ckpt.save(step, model, optim)
    ckpt.wait()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
