import asyncio
import time
from datetime import timedelta

import torch
import torch.nn as nn
from accelerate import Accelerator, InitProcessGroupKwargs

from rubrics import RolloutSource, RubricRegistry
from scoring import RewardScorer

BATCH = 8


def policy_loss(policy, features, rewards):
    advantages = rewards - rewards.mean()
    logp = torch.log_softmax(policy(features), dim=-1)[:, 0]
    return -(advantages * logp).mean()


async def train(accelerator):
    torch.manual_seed(3)
    policy = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 16))
    opt = torch.optim.AdamW(policy.parameters(), lr=1e-3)
    policy, opt = accelerator.prepare(policy, opt)

    registry = RubricRegistry()
    scorer = RewardScorer(registry, asyncio.get_running_loop())
    await scorer.warm_up(["math", "chat", "summaries"])
    source = RolloutSource(accelerator.process_index)

    pending = asyncio.create_task(source.generate(0, BATCH))
    for step in range(4000):
        samples = await pending
        pending = asyncio.create_task(source.generate(step + 1, BATCH))
        await asyncio.sleep(0)
        rewards = torch.tensor(scorer.score(samples))
        features = torch.randn(BATCH, 32)
        loss = policy_loss(policy, features, rewards)
        opt.zero_grad()
        accelerator.backward(loss)
        opt.step()
        time.sleep(0.1)
        if step % 10 == 0:
            accelerator.print(f"step {step} reward {rewards.mean():.3f} loss {loss.item():+.4f}", flush=True)


def main():
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(minutes=40))])
    asyncio.run(train(accelerator))


if __name__ == "__main__":
    main()
