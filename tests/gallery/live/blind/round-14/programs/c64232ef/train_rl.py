import argparse
import time

import torch
import torch.nn as nn
from accelerate import Accelerator

import problems
from sandbox import Scorer


class Policy(nn.Module):
    def __init__(self, dim=256, actions=4):
        super().__init__()
        self.task = nn.Embedding(2, dim)
        self.body = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), nn.GELU())
        self.head = nn.Linear(dim, actions)

    def forward(self, task):
        return self.head(self.body(self.task(task)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", type=int, default=3000)
    parser.add_argument("--completions", type=int, default=8)
    parser.add_argument("--lr", type=float, default=1e-4)
    args = parser.parse_args()

    scorer = Scorer()
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(11)
    policy = Policy()
    optim = torch.optim.Adam(policy.parameters(), lr=args.lr)
    policy, optim = accelerator.prepare(policy, optim)
    torch.manual_seed(100 + accelerator.process_index)

    shard = problems.load(args.problems)[accelerator.process_index :: accelerator.num_processes]
    start = time.time()
    for it, (kind, cases) in enumerate(shard):
        task = torch.full((args.completions,), int(kind == "gcd"))
        logits = policy(task)
        dist = torch.distributions.Categorical(logits=logits)
        actions = dist.sample()
        rewards = torch.tensor(scorer([problems.BODIES[kind][a] for a in actions.tolist()], cases))
        advantage = rewards - rewards.mean()
        loss = -(advantage * dist.log_prob(actions)).mean() - 0.01 * dist.entropy().mean()
        accelerator.backward(loss)
        optim.step()
        optim.zero_grad()
        if (it + 1) % 10 == 0:
            reward = accelerator.reduce(rewards.mean(), "mean")
            accelerator.print(f"iter {it + 1} reward {reward.item():.3f} elapsed {time.time() - start:.1f}s")
    scorer.close()
    accelerator.end_training()


if __name__ == "__main__":
    main()
