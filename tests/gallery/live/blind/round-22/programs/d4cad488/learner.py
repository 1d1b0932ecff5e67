import threading
import time

import torch
import torch.distributed.rpc as rpc
import torch.nn.functional as F

import actor as actor_mod
from policy import make_policy

PUBLISH_EVERY = 10
LEARNER = None


def fetch_since(version):
    return LEARNER.updates_since(version)


class Learner:
    def __init__(self, actors):
        global LEARNER
        self.actors = actors
        self.policy = make_policy()
        self.opt = torch.optim.RMSprop(self.policy.parameters(), lr=1e-3)
        self.version = 0
        self.history = {}
        self.lock = threading.Lock()
        LEARNER = self

    def snapshot(self):
        return {k: v.clone() for k, v in self.policy.state_dict().items()}

    def updates_since(self, version):
        with self.lock:
            return [(v, s) for v, s in sorted(self.history.items()) if v > version]

    def learn(self, rollouts):
        obs = torch.cat([o for o, _ in rollouts])
        ret = torch.cat([r for _, r in rollouts])
        loss = F.mse_loss(self.policy(obs).squeeze(1), ret)
        self.opt.zero_grad()
        loss.backward()
        with self.lock:
            self.opt.step()
        time.sleep(0.08)
        return loss.item()

    def publish(self):
        with self.lock:
            self.version += 1
            self.history[self.version] = self.snapshot()
            self.history.pop(self.version - 8, None)
            futs = [rpc.rpc_async(a, actor_mod.load_weights, args=(self.version, self.history[self.version]))
                    for a in self.actors]
            applied = [f.wait() for f in futs]
        print(f"published v{self.version}, applied {applied}", flush=True)

    def run(self, rounds):
        for it in range(1, rounds + 1):
            futs = [rpc.rpc_async(a, actor_mod.rollout, args=(it,)) for a in self.actors]
            loss = self.learn([f.wait() for f in futs])
            if it % PUBLISH_EVERY == 0:
                print(f"iter {it} value loss {loss:.4f}", flush=True)
                self.publish()
