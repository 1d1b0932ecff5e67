import logging
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from torch.utils.data import DataLoader

from problems import MAX_CHARS, load_problems
from rewards import MathRewardManager

logger = logging.getLogger("grpo")


class CharPolicy(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.embed = nn.Embedding(128, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, 128)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


def encode(texts, length=96):
    ids = torch.zeros(len(texts), length, dtype=torch.long)
    for i, text in enumerate(texts):
        tail = torch.tensor([min(ord(c), 127) for c in text[-length:]])
        ids[i, :len(tail)] = tail
    return ids


def main():
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    logging.basicConfig(
        level=logging.INFO if accelerator.is_main_process else logging.ERROR, format="%(asctime)s %(name)s %(message)s"
    )
    torch.manual_seed(0)
    model = CharPolicy()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(load_problems(3600), batch_size=2, shuffle=False, collate_fn=lambda rows: rows)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    reward_manager = MathRewardManager()

    step, tic = 0, time.time()
    for epoch in range(50):
        for rows in loader:
            step += 1
            completions = [c for row in rows for c in row["completions"]]
            answers = [row["answer"] for row in rows for _ in row["completions"]]
            rewards = torch.tensor(reward_manager(completions, answers))
            grouped = rewards.view(len(rows), -1)
            advantages = ((grouped - grouped.mean(1, keepdim=True)) / (grouped.std(1, keepdim=True) + 1e-4)).flatten()
            mean_reward = accelerator.gather(rewards.mean().unsqueeze(0)).mean().item()

            ids = encode(completions)
            logits = model(ids[:, :-1])
            nll = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none").view(len(ids), -1).mean(1)
            loss = (advantages * nll).mean() + 0.1 * nll.mean()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            if step % 5 == 0:
                logger.info("epoch %d step %d loss %.4f reward %.3f %.2fs/step", epoch, step, loss.item(), mean_reward, (time.time() - tic) / step)
    accelerator.end_training()


if __name__ == "__main__":
    main()
