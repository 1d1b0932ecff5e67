import collections
import multiprocessing as mp
import os
import signal
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from actor import act
from policy import CorridorEnv, make_policy

N_ACTORS = 2
UNROLL = 16
BATCH = 4


class Stats:
    """Fed by a thread that waits for finished episodes."""

    def __init__(self):
        self.returns = collections.deque(maxlen=200)
        self.arrived = threading.Condition()
        self.backlog = collections.deque()
        threading.Thread(target=self._collect, name="stats", daemon=True).start()

    def push(self, value):
        with self.arrived:
            self.backlog.append(value)
            self.arrived.notify()

    def _collect(self):
        while True:
            with self.arrived:
                while not self.backlog:
                    self.arrived.wait()
                value = self.backlog.popleft()
            self.returns.append(value)


def learn(model, optimizer, batch, gamma=0.95):
    obs, actions, targets = [], [], []
    for _, _, steps in batch:
        ret = 0.0
        for o, a, r, done in reversed(steps):
            ret = r + (0.0 if done else gamma * ret)
            obs.append(o)
            actions.append(a)
            targets.append(ret)
    obs, actions, targets = torch.tensor(obs), torch.tensor(actions), torch.tensor(targets)
    for _ in range(4):
        out = model(obs)
        logp = torch.log_softmax(out[:, :2], dim=-1).gather(1, actions[:, None]).squeeze(1)
        advantage = targets - out[:, 2]
        loss = -(logp * advantage.detach()).mean() + advantage.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.05)
    return loss.item()


def evaluate(policy, rank, episodes=40):
    env = CorridorEnv(seed=900 + rank)
    score = torch.zeros(2)
    for _ in range(episodes):
        obs, done = env.reset(), False
        while not done:
            with torch.no_grad():
                obs, reward, done = env.step(policy(obs)[:2].argmax().item())
        score += torch.tensor([reward, 1.0])
        time.sleep(0.12)
    dist.all_reduce(score)
    return (score[0] / score[1]).item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank = dist.get_rank()
    ctx = mp.get_context("spawn")
    trajectories = ctx.Queue(maxsize=3)
    mailboxes = [ctx.Queue() for _ in range(N_ACTORS)]
    actors = [
        ctx.Process(target=act, args=(10 * rank + i, trajectories, mailboxes[i], UNROLL), daemon=True)
        for i in range(N_ACTORS)
    ]
    for p in actors:
        p.start()

    show = {"due": False}
    signal.signal(signal.SIGALRM, lambda *_: show.update(due=True))
    signal.setitimer(signal.ITIMER_REAL, 7.0, 7.0)

    torch.manual_seed(0)
    model = DDP(make_policy())
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    stats = Stats()
    for update in range(1_000_000):
        batch = [trajectories.get() for _ in range(BATCH)]
        for _, _, steps in batch:
            for _, _, reward, done in steps:
                if done:
                    stats.push(reward)
        loss = learn(model, optimizer, batch)
        if update % 8 == 0:
            state = {k: v.numpy().copy() for k, v in model.module.state_dict().items()}
            for box in mailboxes:
                box.put((update, state))
        if show["due"]:
            show["due"] = False
            mean = sum(stats.returns) / max(1, len(stats.returns))
            print(f"[learner {rank}] update {update} loss {loss:.4f} mean return {mean:.3f}", flush=True)
        if update % 100 == 99:
            score = evaluate(model.module, rank)
            if rank == 0:
                print(f"update {update} greedy success {score:.3f}", flush=True)


if __name__ == "__main__":
    main()
