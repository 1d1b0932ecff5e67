import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from common import broadcast_dir, build_policy, rollout_path, wait_for_path


class WeightBroadcaster:
    def __init__(self, group):
        self.group = group

    def push(self, model, step):
        path = broadcast_dir(step)
        (path / "STABLE").touch()
        wait_for_path(path / "READY")
        for p in model.parameters():
            dist.broadcast(p.data, src=0, group=self.group)


def train(trainer_group, weight_group):
    rank = dist.get_rank()
    model = DDP(build_policy(), process_group=trainer_group)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    broadcaster = WeightBroadcaster(weight_group)
    for step in range(100000):
        wait_for_path(rollout_path(step))
        data = torch.load(rollout_path(step))
        obs, act, adv = (data[k].chunk(2)[rank] for k in ("obs", "act", "adv"))
        logp = torch.log_softmax(model(obs), -1).gather(1, act[:, None])[:, 0]
        loss = -(logp * adv).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.3)
        if rank == 0:
            print(f"[trainer] step {step} loss {loss.item():.4f}", flush=True)
            broadcaster.push(model.module, step)
        dist.barrier(group=trainer_group)
