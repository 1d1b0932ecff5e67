import random
import time

import torch
import torch.distributed.rpc as rpc

from learner import Learner, qnet
from replay import Corridor, Replay


class LearnerGroup:
    def __init__(self, names, ranks):
        self.refs = [rpc.remote(name, Learner, args=(i, ranks)) for i, name in enumerate(names)]
        for ref in self.refs:
            ref.confirmed_by_owner()

    def update(self, batches):
        futs = [ref.rpc_async(timeout=0).update(b) for ref, b in zip(self.refs, batches)]
        return [f.wait() for f in futs]

    def weights(self):
        return self.refs[0].rpc_sync(timeout=0).weights()

    def close(self, directory):
        return [ref.rpc_sync(timeout=0).close(directory) for ref in self.refs]


def train(args, names, ranks):
    group = LearnerGroup(names, ranks)
    env, replay, policy = Corridor(seed=3), Replay(), qnet()
    obs, ret, returns = env.reset(), 0.0, []
    start = time.time()
    for it in range(args.iterations):
        eps = max(0.05, 1.0 - it / (0.6 * args.iterations))
        for _ in range(64):
            if random.random() < eps:
                act = random.randrange(3)
            else:
                with torch.no_grad():
                    act = int(policy(obs).argmax())
            nxt, rew, done = env.step(act)
            replay.add((obs, act, rew, nxt, done))
            obs, ret = nxt, ret + rew
            if done:
                returns.append(ret)
                obs, ret = env.reset(), 0.0
        if it < 4:
            continue
        losses = group.update([replay.sample(96) for _ in names])
        if it % 5 == 0:
            policy.load_state_dict(group.weights())
        if it % 20 == 0:
            recent = returns[-50:]
            print(f"iter {it} return {sum(recent) / len(recent):.3f} loss {sum(losses) / len(losses):.4f} {time.time() - start:.1f}s", flush=True)
    counts = group.close(args.dir)
    print(f"learners closed after {counts} updates", flush=True)
