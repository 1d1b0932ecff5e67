import datetime
import multiprocessing as mp
import os

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from agent import OBS_DIM, Agent

QUEUE_SIZE = 32
MIN_AGENTS, MAX_AGENTS = 1, 4
ROLLOUTS_PER_UPDATE = 4
ADJUST_EVERY = 30


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(OBS_DIM, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.pi = nn.Linear(64, 6)
        self.v = nn.Linear(64, 1)

    def forward(self, obs):
        h = self.trunk(obs)
        return self.pi(h), self.v(h).squeeze(-1)


class Learner:
    def __init__(self, rank, world, port, task):
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        torch.set_num_threads(1)
        dist.init_process_group(
            "gloo", rank=rank, world_size=world, timeout=datetime.timedelta(minutes=40)
        )
        self.rank = rank
        self.task = task
        self.experience_q = mp.Queue(maxsize=QUEUE_SIZE)
        self.agents = []
        torch.manual_seed(0)
        self.net = DDP(ActorCritic())
        self.opt = torch.optim.RMSprop(self.net.parameters(), lr=3e-4)

    def add_agent(self):
        agent = Agent(len(self.agents), self.task, self.experience_q, seed=100 * self.rank + len(self.agents))
        agent.start()
        self.agents.append(agent)

    def remove_agent(self):
        agent = self.agents.pop()
        agent.exit_flag.value = 1
        agent.join()

    def adjust_agents(self):
        backlog = self.experience_q.qsize()
        if backlog > 0.75 * QUEUE_SIZE and len(self.agents) > MIN_AGENTS:
            self.remove_agent()
        elif backlog < 0.1 * QUEUE_SIZE and len(self.agents) < MAX_AGENTS:
            self.add_agent()
        print(f"[learner {self.rank}] task={self.task} backlog={backlog} agents={len(self.agents)}", flush=True)

    def next_batch(self):
        parts = [self.experience_q.get()[1:] for _ in range(ROLLOUTS_PER_UPDATE)]
        obs, actions, returns = (np.concatenate(x) for x in zip(*parts))
        return torch.from_numpy(obs), torch.from_numpy(actions), torch.from_numpy(returns)

    def update(self, obs, actions, returns):
        logits, value = self.net(obs)
        adv = returns - value.detach()
        logp = F.log_softmax(logits, -1).gather(1, actions[:, None]).squeeze(1)
        loss = -(logp * adv).mean() + 0.5 * F.mse_loss(value, returns)
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 40.0)
        self.opt.step()
        return loss.item()

    def run(self, updates):
        for _ in range(2):
            self.add_agent()
        for it in range(1, updates + 1):
            loss = self.update(*self.next_batch())
            if it % 5 == 0 and self.rank == 0:
                print(f"update {it} loss {loss:.4f}", flush=True)
            if it % ADJUST_EVERY == 0:
                self.adjust_agents()
        for agent in self.agents:
            agent.exit_flag.value = 1
            agent.terminate()
        dist.destroy_process_group()
