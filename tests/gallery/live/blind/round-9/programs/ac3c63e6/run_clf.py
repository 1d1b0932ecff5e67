import argparse
import random
import time

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs
from datasets import Dataset, disable_progress_bars
from datetime import timedelta
from torch import nn
from torch.utils.data import DataLoader

from featurize import Featurizer, HashEncoder

TOPICS = {
    0: "match team goal season coach league player win score cup".split(),
    1: "market share price stock bank profit trade rate growth fund".split(),
    2: "model chip code software data network cloud phone app device".split(),
}
COMMON = "the a of to in and on for with was said from that new after over year".split()


def make_pool(n, seed):
    rng = random.Random(seed)
    rows = {"text": [], "label": []}
    for _ in range(n):
        y = rng.randrange(3)
        words = [rng.choice(TOPICS[y]) if rng.random() < 0.3 else rng.choice(COMMON) for _ in range(rng.randint(20, 60))]
        rows["text"].append(" ".join(words))
        rows["label"].append(y)
    return Dataset.from_dict(rows)


class Head(nn.Module):
    def __init__(self, dim=256, hidden=512, classes=3):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, classes))

    def forward(self, x):
        return self.net(x)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--pool-size", type=int, default=4000)
    p.add_argument("--steps-per-round", type=int, default=60)
    p.add_argument("--num-proc", type=int, default=2)
    args = p.parse_args()

    disable_progress_bars()
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(hours=2))])
    torch.manual_seed(0)
    featurizer = Featurizer(HashEncoder())
    model = Head()
    model, opt = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-3))

    for rnd in range(args.rounds):
        pool = make_pool(args.pool_size if rnd else 800, seed=rnd)
        with accelerator.main_process_first():
            pool = pool.map(
                featurizer, batched=True, batch_size=200,
                num_proc=args.num_proc if len(pool) > 1000 else None,
                desc="features",
            )
        accelerator.print(f"round {rnd}: {len(pool)} samples ready")
        pool = pool.with_format("torch", columns=["features", "label"])
        loader = accelerator.prepare(DataLoader(pool, batch_size=64, shuffle=True, drop_last=True))
        step, t0 = 0, time.time()
        while step < args.steps_per_round:
            for batch in loader:
                loss = F.cross_entropy(model(batch["features"]), batch["label"])
                accelerator.backward(loss)
                opt.step()
                opt.zero_grad()
                step += 1
                if step % 10 == 0:
                    accelerator.print(f"round {rnd} step {step} loss {loss.item():.4f} {(time.time() - t0) / 10 * 1e3:.0f} ms", flush=True)
                    t0 = time.time()
                if step == args.steps_per_round:
                    break
        accelerator.wait_for_everyone()


if __name__ == "__main__":
    main()
