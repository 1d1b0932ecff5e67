import argparse
import gc
import logging
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from replay import ReplayMemory

log = logging.getLogger("dqn")


class QNet(nn.Module):
    def __init__(self, h=128, actions=3):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, actions))

    def forward(self, s):
        return self.net(s)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=200000)
    ap.add_argument("--capacity", type=int, default=300000)
    ap.add_argument("--bs", type=int, default=64)
    ap.add_argument("--gc-every", type=int, default=250)
    ap.add_argument("--target-every", type=int, default=100)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s {rank} %(message)s")
    gc.disable()
    t0 = time.time()
    memory = ReplayMemory(args.capacity, seed=rank)
    log.info("replay of %d filled in %.1fs", args.capacity, time.time() - t0)

    torch.manual_seed(0)
    q = DDP(QNet())
    target = QNet()
    target.load_state_dict(q.module.state_dict())
    opt = torch.optim.Adam(q.parameters(), lr=5e-4)
    for step in range(1, args.steps + 1):
        memory.add(8)
        batch = memory.sample(args.bs)
        s = torch.tensor([b.s for b in batch])
        a = torch.tensor([b.a for b in batch])
        r = torch.tensor([b.r for b in batch])
        ns = torch.tensor([b.ns for b in batch])
        with torch.no_grad():
            y = r + 0.97 * target(ns).amax(-1)
        loss = F.smooth_l1_loss(q(s).gather(1, a[:, None]).squeeze(1), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % args.target_every == 0:
            target.load_state_dict(q.module.state_dict())
            if rank == 0:
                log.info("step %d loss %.4f", step, loss.item())
        if step % args.gc_every == 0:
            t0 = time.time()
            freed = gc.collect()
            log.info("gc at step %d: %d objects, %.2fs", step, freed, time.time() - t0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
