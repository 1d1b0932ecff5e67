import signal
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

from envs import GridMaze, rollout_worker, video_worker

WORKERS, EPISODES = 3, 6


class Agent:
    def __init__(self, rank, ctx):
        self.rank = rank
        self.save_asked = False
        signal.signal(signal.SIGUSR1, self._ask_save)
        self.requests, self.episodes, self.videos = ctx.Queue(), ctx.Queue(), ctx.Queue()
        self.procs = [
            ctx.Process(target=rollout_worker, args=(100 * rank + i, self.requests, self.episodes), daemon=True)
            for i in range(WORKERS)
        ]
        if rank == 0:
            self.procs.append(ctx.Process(target=video_worker, args=(self.videos,), daemon=True))
        for p in self.procs:
            p.start()

    def _ask_save(self, signum, frame):
        self.save_asked = True

    def request(self, epsilon):
        for _ in range(EPISODES):
            self.requests.put(epsilon)

    def collect(self):
        steps = [s for _ in range(EPISODES) for s in self.episodes.get()]
        obs, act, ret = zip(*steps)
        return torch.tensor(obs), torch.tensor(act), torch.tensor(ret)


def learn(rank, world, port, ctx):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=world, timeout=timedelta(minutes=30)
    )
    torch.manual_seed(0)
    policy = DistributedDataParallel(nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 4)))
    optim = torch.optim.Adam(policy.parameters(), lr=3e-3)
    agent = Agent(rank, ctx)
    test_env = GridMaze(9000 + rank)

    agent.request(epsilon=1.0)
    for iteration in range(1, 100_000):
        obs, act, ret = agent.collect()
        agent.request(epsilon=max(0.1, 1.0 - iteration / 200))
        with torch.no_grad():
            old = torch.log_softmax(policy.module(obs), -1).gather(1, act.unsqueeze(1)).squeeze(1)
        for epoch in range(8):
            index = torch.randint(0, len(act), (48,))
            new = torch.log_softmax(policy(obs[index]), -1).gather(1, act[index].unsqueeze(1)).squeeze(1)
            ratio = (new - old[index]).exp()
            adv = ret[index] - ret.mean()
            loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
            optim.zero_grad()
            loss.backward()
            optim.step()
            time.sleep(0.1)
            kl = (old[index] - new.detach()).mean()
            dist.all_reduce(kl)
            if kl.item() / world > 0.02:
                break
        flag = torch.tensor([int(agent.save_asked)])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        if flag.item():
            agent.save_asked = False
            dist.barrier()
        if rank == 0:
            print(f"iteration {iteration} loss {loss.item():+.4f} kl {kl.item() / world:.4f} epochs {epoch + 1}", flush=True)
        if iteration % 25 == 0:
            scores = torch.tensor([sum(r for _, _, r in test_env.episode(0.0)) for _ in range(30)])
            total = scores.mean()
            dist.all_reduce(total)
            if rank == 0:
                print(f"iteration {iteration} test return {total.item() / world:.2f}", flush=True)
                agent.videos.put(f"iteration-{iteration}")
