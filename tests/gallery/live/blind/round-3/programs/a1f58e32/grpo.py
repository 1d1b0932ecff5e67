import argparse
import threading
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from chat_parsing import parse_response
from rollout import ToolEnv


def reward(completions):
    out = []
    for c in completions:
        parsed = parse_response(c)
        out.append(0.5 * bool(parsed["tool_calls"]) - 0.1 * (len(parsed["content"]) > 0))
    return torch.tensor(out)


def heartbeat(path):
    while True:
        with open(path, "w") as f:
            f.write(str(time.time()))
        time.sleep(5)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--max_steps", type=int, default=100)
    p.add_argument("--logging_steps", type=int, default=10)
    a = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    threading.Thread(target=heartbeat, args=(f"heartbeat_{rank}",), daemon=True).start()
    env = ToolEnv(rank, dist.get_world_size())
    policy = DDP(nn.Linear(32, 8))
    opt = torch.optim.Adam(policy.parameters(), lr=1e-4)
    for step in range(1, a.max_steps + 1):
        completions = env.generate(4)
        rewards = reward(completions)
        adv = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
        logp = policy(torch.randn(4, 32)).log_softmax(-1)[:, 0]
        loss = -(adv * logp).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        mean = rewards.mean().clone()
        dist.all_reduce(mean)
        time.sleep(0.3)
        if step % a.logging_steps == 0 and rank == 0:
            print({"loss": round(loss.item(), 5), "reward": round(mean.item() / 2, 4), "step": step}, flush=True)


if __name__ == "__main__":
    main()
