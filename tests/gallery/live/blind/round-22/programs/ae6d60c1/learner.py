import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

from actor import act

FEATURES = 12


class ActorPool:
    def __init__(self, ctx, kind, difficulty, size, base_seed):
        self.unrolls = ctx.Queue(maxsize=8)
        self.stop = ctx.Event()
        self.procs = [
            ctx.Process(target=act, args=(kind, difficulty, base_seed + i, self.unrolls, self.stop), name=f"actor-{i}")
            for i in range(size)
        ]
        for p in self.procs:
            p.start()

    def take(self, n):
        return [self.unrolls.get() for _ in range(n)]

    def close(self):
        self.stop.set()
        for p in self.procs:
            p.join()
        self.unrolls.close()


def encode(obs):
    obs = torch.from_numpy(obs).flatten(1)
    return obs[:, : (obs.shape[1] // FEATURES) * FEATURES].unflatten(1, (FEATURES, -1)).mean(-1)


def train(rank, world, port, ctx, kinds, updates_per_stage=70):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=world, timeout=timedelta(minutes=60)
    )
    torch.manual_seed(0)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 5)))
    optim = torch.optim.RMSprop(net.parameters(), lr=5e-4)
    update = 0
    for stage in range(1, 200):
        pool = ActorPool(ctx, kinds[rank], difficulty=stage, size=2, base_seed=1000 * stage + 10 * rank)
        for _ in range(updates_per_stage):
            (obs, action, reward), = pool.take(1)
            out = net(encode(obs))
            logp = torch.log_softmax(out[:, :4], -1).gather(1, torch.from_numpy(action).unsqueeze(1)).squeeze(1)
            value = out[:, 4]
            target = torch.from_numpy(reward)
            loss = -(logp * (target - value.detach())).mean() + 0.5 * (target - value).pow(2).mean()
            optim.zero_grad()
            loss.backward()
            optim.step()
            time.sleep(0.2)
            update += 1
            if rank == 0 and update % 10 == 0:
                print(f"stage {stage} update {update} loss {loss.item():.4f}", flush=True)
        pool.close()
        solved = torch.tensor([reward.mean()])
        dist.all_reduce(solved)
        if rank == 0:
            print(f"stage {stage} done, mean reward {solved.item() / world:.3f}", flush=True)
