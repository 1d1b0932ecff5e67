import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from tilecache import Archive, TileCache

SCENES_PER_RANK = 400
STEPS_PER_SCENE = 12
ROWS = 64


def build():
    return nn.Sequential(nn.Linear(47, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 1))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    cache = TileCache(os.environ["TILE_CACHE"], Archive())
    ddp = DDP(build())
    opt = torch.optim.AdamW(ddp.parameters(), lr=1e-3)
    scenes = [rank + world * k for k in range(SCENES_PER_RANK)]
    for s in scenes[:2]:
        cache.ahead(s)

    step, mark = 0, time.time()
    for k, scene in enumerate(scenes):
        if k + 2 < len(scenes):
            cache.ahead(scenes[k + 2])
        for j in range(STEPS_PER_SCENE):
            rows = torch.from_numpy(cache.load(scene, j * ROWS, ROWS))
            loss = (ddp(rows[:, :47]) - rows[:, 47:]).square().mean()
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            step += 1
            if rank == 0 and step % 10 == 0:
                now = time.time()
                print(f"step {step} scene {k} loss {loss.item():.4f} {(now - mark) / 10:.3f} s/step", flush=True)
                mark = now
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
