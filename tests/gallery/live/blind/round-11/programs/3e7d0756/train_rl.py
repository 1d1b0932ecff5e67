import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from client import JudgeClient

VOCAB, LENGTH = 48, 10


class Policy(nn.Module):
    def __init__(self, dim=96):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


@torch.no_grad()
def rollout(policy, n):
    tokens = torch.randint(VOCAB, (n, 1))
    for _ in range(LENGTH):
        tokens = torch.cat([tokens, torch.multinomial(policy(tokens)[:, -1].softmax(-1), 1)], dim=1)
    return tokens


def update(model, opt, tokens, rewards):
    advantage = rewards - rewards.mean()
    logp = model(tokens[:, :-1]).log_softmax(-1).gather(-1, tokens[:, 1:, None]).squeeze(-1).sum(-1)
    loss = -(advantage * logp).mean()
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    return loss.detach()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    judge = JudgeClient(int(os.environ["JUDGE_PORT"]))
    judge.wait_ready()
    torch.manual_seed(0)
    model = DDP(Policy())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    torch.manual_seed(50 + rank)

    began = time.time()
    n = 24
    pending, ticket = None, None
    for step in range(1, 1000001):
        fresh = rollout(model.module, n)
        fresh_ticket = judge.submit(fresh.tolist())
        if pending is not None:
            rewards = torch.tensor(judge.fetch(ticket))
            update(model, opt, pending, rewards)
        pending, ticket = fresh, fresh_ticket
        n = 16 + int(torch.randint(17, (1,)))
        if step % 40 == 0:
            stats = torch.tensor([rewards.mean().item(), 1.0])
            dist.all_reduce(stats)
            if rank == 0:
                print(f"step {step} reward {stats[0] / stats[1]:.3f} {(time.time() - began) / step * 1e3:.0f} ms/step", flush=True)
        if step % 400 == 0:
            with torch.no_grad():
                sample = rollout(model.module, 64)
                spread = torch.tensor(float(sample.unique().numel()))
            dist.all_reduce(spread)
            if rank == 0:
                torch.save(model.module.state_dict(), f"/tmp/policy-{os.getpid()}.pt")
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
