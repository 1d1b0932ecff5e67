import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from reward_client import RewardClient, RewardServer

VOCAB, LENGTH, GROUP = 64, 12, 4
STEPS = 20000


class Policy(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, tokens):
        h, _ = self.rnn(self.embed(tokens))
        return self.head(h)


@torch.no_grad()
def rollout(policy, n):
    tokens = torch.randint(VOCAB, (n, 1))
    for _ in range(LENGTH):
        logits = policy(tokens)[:, -1]
        tokens = torch.cat([tokens, torch.multinomial(logits.softmax(-1), 1)], dim=1)
    return tokens


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(100 + rank)

    port = [RewardServer().port if rank == 0 else None]
    dist.broadcast_object_list(port, src=0)
    client = RewardClient(port[0])

    policy = DDP(Policy())
    opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
    began = time.time()
    for step in range(STEPS):
        tokens = rollout(policy.module, GROUP * 4)
        groups = tokens.view(4, GROUP, -1)
        rewards = torch.tensor([client.score(g.tolist(), step) for g in groups])
        advantage = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)

        logp = policy(tokens[:, :-1]).log_softmax(-1)
        logp = logp.gather(-1, tokens[:, 1:, None]).squeeze(-1).sum(-1)
        loss = -(advantage.flatten() * logp).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()

        if step % 10 == 0:
            mean = rewards.mean()
            dist.all_reduce(mean, op=dist.ReduceOp.SUM)
            if rank == 0:
                print(f"step {step} reward {mean.item() / dist.get_world_size():.4f} "
                      f"{(time.time() - began) / (step + 1) * 1000:.0f} ms/step", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
