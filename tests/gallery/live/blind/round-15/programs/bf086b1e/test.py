import torch

from envs import CatchBatch


@torch.no_grad()
def evaluate(model, seed, n=32, steps=48):
    env = CatchBatch(n, seed)
    obs = env.observe()
    total, finished = 0.0, 0
    for _ in range(steps):
        _, logits = model(obs)
        obs, reward, done = env.step(logits.argmax(1))
        total += reward.sum().item()
        finished += int(done.sum())
    return total / max(finished, 1)
