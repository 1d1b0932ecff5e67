import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Pole:
    """An environment: balance a pole."""

    def __init__(self) -> None:
        self.state = torch.zeros(4)

    def step(self, action: int) -> tuple[torch.Tensor, float]:
        self.state = 0.9 * self.state + 0.1 * torch.randn(4) + 0.05 * (2 * action - 1)
        return self.state, float(1 - self.state.abs().mean())


def rollout(policy, pole, length=64):
    states, actions, rewards = [], [], []
    for _ in range(length):
        states.append(pole.state)
        action = torch.distributions.Categorical(logits=policy(pole.state)).sample()
        actions.append(action)
        rewards.append(pole.step(int(action))[1])
    return torch.stack(states), torch.stack(actions), torch.tensor(rewards)


def main() -> None:
    dist.init_process_group("gloo")
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    model, pole = DDP(policy), Pole()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    for update in range(100_000):
        with torch.no_grad():
            states, actions, rewards = rollout(policy, pole)
        advantage = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
        chosen = torch.distributions.Categorical(logits=model(states)).log_prob(actions)
        loss = -(chosen * advantage).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 20 == 0 and dist.get_rank() == 0:
            print(f"update {update} reward {rewards.mean():.3f}", flush=True)


if __name__ == "__main__":
    main()
