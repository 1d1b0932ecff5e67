import multiprocessing as mp
import time

import torch
import torch.nn as nn
from accelerate import Accelerator, debug_launcher

from rollout_pool import RolloutPool
from telemetry import Telemetry

NUM_PROCESSES, WORKERS, ITERS = 3, 3, 100000


class TurnPolicy(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(64, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, 64)

    def forward(self, ids):
        return self.head(self.gru(self.emb(ids))[0])


def plan_turns(it, rank):
    turns = [4 + (it + rank + w) % 3 for w in range(WORKERS)]
    if it % 4 == 3 and (it // 4) % NUM_PROCESSES == rank:
        turns[0] = 60
    if it % 24 == 20:
        turns = [180 - 20 * rank]
    if it % 24 == 22:
        turns = [140 + 20 * rank]
    return turns


def training_loop():
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    rank = accelerator.process_index
    torch.manual_seed(0)
    policy = TurnPolicy()
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3)
    policy, optimizer = accelerator.prepare(policy, optimizer)
    pool = RolloutPool(mp.get_context("fork"), WORKERS, seed=rank)
    telemetry = Telemetry() if accelerator.is_main_process else None
    if telemetry is not None:
        telemetry.start()
    for it in range(ITERS):
        pool.push_weights(it)
        episodes = pool.collect(plan_turns(it, rank))
        ids = torch.tensor([e["tokens"] for e in episodes])
        rewards = torch.tensor([e["reward"] for e in episodes])
        for half in range(2):
            logits = policy(ids[:, :-1])
            logp = torch.log_softmax(logits, -1).gather(-1, ids[:, 1:, None]).squeeze(-1).mean(1)
            loss = -(logp * (rewards - 0.5)).mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            time.sleep(0.08)
        stats = accelerator.gather(torch.stack([rewards.mean(), loss.detach()])[None])
        if telemetry is not None:
            telemetry.log(it=it, reward=stats[:, 0].mean().item(), loss=stats[:, 1].mean().item(),
                          turns=max(e["turns"] for e in episodes))


if __name__ == "__main__":
    debug_launcher(training_loop, num_processes=NUM_PROCESSES)
