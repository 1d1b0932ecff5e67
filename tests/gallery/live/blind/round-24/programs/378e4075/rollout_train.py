import os
import tempfile
import threading
import time

import torch
import torch.nn.functional as F
from accelerate import Accelerator, debug_launcher

from policy import EOS, build_policy, completions
from rewards import RewardServer

PROMPTS, GROUP = 4, 3


class StatsWriter(threading.Thread):
    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.rows, self.ready = path, [], threading.Condition()

    def add(self, row):
        with self.ready:
            self.rows.append(row)
            self.ready.notify()

    def run(self):
        while True:
            with self.ready:
                while not self.rows:
                    self.ready.wait()
                rows, self.rows = self.rows, []
            with open(self.path, "a") as f:
                f.writelines(f"{r}\n" for r in rows)


def rollout(accelerator, model, server, gen, it):
    policy = accelerator.unwrap_model(model)
    prompt_len = 4 + (it + accelerator.process_index) % 5
    prompts = torch.randint(2, EOS, (PROMPTS, prompt_len), generator=gen).repeat_interleave(GROUP, 0)
    limit = 24 + 16 * ((it + accelerator.process_index) % accelerator.num_processes)
    with torch.no_grad():
        policy.eval()
        tokens = policy.generate(prompts, attention_mask=torch.ones_like(prompts), do_sample=True,
                                 max_new_tokens=limit, synced_gpus=True)
        policy.train()
    rewards = torch.tensor(server.score(completions(tokens, prompt_len)))
    rewards = rewards.view(PROMPTS, GROUP)
    advantage = (rewards - rewards.mean(1, keepdim=True)).flatten()
    return tokens, prompt_len, advantage, rewards.mean()


def train():
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    server = RewardServer()
    model = build_policy()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    model, optimizer = accelerator.prepare(model, optimizer)
    writer = None
    if accelerator.is_main_process:
        writer = StatsWriter(os.path.join(tempfile.mkdtemp(prefix="rollout_"), "stats.txt"))
        writer.start()
    gen = torch.Generator().manual_seed(accelerator.process_index)
    torch.manual_seed(100 + accelerator.process_index)
    for it in range(1, 100001):
        tokens, prompt_len, advantage, reward = rollout(accelerator, model, server, gen, it)
        for epoch in range(8):
            logits = model(tokens[:, :-1]).logits[:, prompt_len - 1:]
            target = tokens[:, prompt_len:]
            logp = -F.cross_entropy(logits.transpose(1, 2), target, reduction="none")
            loss = -(logp.mean(1) * advantage).mean()
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            time.sleep(0.15)
        mean_reward = accelerator.reduce(reward, reduction="mean").item()
        if accelerator.is_main_process:
            writer.add((it, mean_reward))
            print(f"iteration {it} reward {mean_reward:.4f} loss {loss.item():.5f}", flush=True)


def main():
    debug_launcher(train, num_processes=2)


if __name__ == "__main__":
    main()
