import argparse
import time

import torch
from accelerate import Accelerator, debug_launcher
from accelerate.utils import set_seed
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

from policy import Policy
from prompts import Prompts
from scoring import ScoringPool


def collate(rows):
    return {"ids": torch.stack([r["ids"] for r in rows]), "new": torch.tensor([r["new"] for r in rows])}


def train(steps):
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    set_seed(11, device_specific=True)
    torch.manual_seed(0)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    loader = DataLoader(Prompts(), batch_size=2, collate_fn=collate)
    policy, optimizer, loader = accelerator.prepare(policy, optimizer, loader)
    torch.manual_seed(100 + accelerator.process_index)
    pool = ScoringPool()
    baseline, done, t = 0.0, 0, time.perf_counter()
    while done < steps:
        for batch in loader:
            actor = accelerator.unwrap_model(policy)
            responses = [actor.sample(p, n) for p, n in zip(batch["ids"], batch["new"].tolist())]
            rewards = torch.tensor(pool.score(responses))
            mean = accelerator.reduce(rewards.mean(), reduction="mean").item()
            baseline = 0.9 * baseline + 0.1 * mean
            targets = pad_sequence([torch.tensor(r) for r in responses], batch_first=True, padding_value=0)
            mask = torch.arange(targets.size(1))[None] < batch["new"][:, None]
            full = torch.cat([batch["ids"], targets], 1)
            logits, _ = policy(full[:, :-1])
            logp = logits[:, batch["ids"].size(1) - 1:].log_softmax(-1).gather(-1, targets[..., None])[..., 0]
            loss = -(((rewards - baseline)[:, None] * logp) * mask).sum() / mask.sum()
            optimizer.zero_grad()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(policy.parameters(), 1.0)
            optimizer.step()
            done += 1
            if done % 10 == 0 and accelerator.is_main_process:
                now = time.perf_counter()
                print(f"step {done} reward {mean:.4f} baseline {baseline:.4f} "
                      f"{10 / (now - t):.1f} it/s", flush=True)
                t = now
            if done >= steps:
                break
    accelerator.end_training()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--processes", type=int, default=3)
    p.add_argument("--steps", type=int, default=4000)
    args = p.parse_args()
    debug_launcher(train, (args.steps,), num_processes=args.processes)
