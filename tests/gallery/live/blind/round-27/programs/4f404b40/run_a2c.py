import argparse
import os
import random
import socket
import threading
import time

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
from torch import nn

from observer import Observer


class Agent:
    def __init__(self, n):
        self.policy = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 2))
        self.opt = torch.optim.Adam(self.policy.parameters(), lr=1e-2)
        self.me = rpc.RRef(self)
        self.obs = [rpc.remote(f"observer{i}", Observer) for i in range(1, n + 1)]
        self.lock = threading.Lock()
        self.log_probs = {i: [] for i in range(1, n + 1)}
        self.rewards = {i: [] for i in range(1, n + 1)}

    def select_action(self, obs_id, state):
        with self.lock:
            dist = torch.distributions.Categorical(logits=self.policy(state))
            action = dist.sample()
            self.log_probs[obs_id].append(dist.log_prob(action))
        return int(action)

    def report_reward(self, obs_id, reward):
        self.rewards[obs_id].append(reward)

    def collect(self, update):
        rng = random.Random(update)
        futs = [o.rpc_async(timeout=0).run_episode(self.me, rng.randint(6, 24)) for o in self.obs]
        return [f.wait() for f in futs]

    def learn(self):
        losses = []
        for i, lp in self.log_probs.items():
            returns = torch.tensor(self.rewards[i]).flip(0).cumsum(0).flip(0)
            losses.append(-(torch.stack(lp) * (returns - returns.mean())).mean())
            self.log_probs[i], self.rewards[i] = [], []
        self.opt.zero_grad()
        torch.stack(losses).sum().backward()
        self.opt.step()

    def replay_analysis(self, seconds):
        end = time.time() + seconds
        while time.time() < end:
            self.policy(torch.randn(256, 8))
            time.sleep(0.1)


def run(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    opts = rpc.TensorPipeRpcBackendOptions(num_worker_threads=8, rpc_timeout=1800)
    rpc.init_rpc("agent" if rank == 0 else f"observer{rank}", rank=rank, world_size=world,
                 rpc_backend_options=opts)
    if rank == 0:
        agent = Agent(world - 1)
        for update in range(100000):
            scores = agent.collect(update)
            agent.learn()
            if update % 5 == 0:
                print(f"update {update} return {sum(scores) / len(scores):.2f}", flush=True)
            if update % 10 == 9:
                agent.replay_analysis(7)
    rpc.shutdown(timeout=0)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--observers", type=int, default=3)
    args = ap.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(run, args=(args.observers + 1, port), nprocs=args.observers + 1)
