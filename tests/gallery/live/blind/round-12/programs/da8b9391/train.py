import random

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from datasets import Dataset
from torch.utils.data import DataLoader

from model import Encoder

SEQ = 48
STEPS_PER_ROUND = 60


def make_dataset(n=768):
    rng = random.Random(0)
    rows = {"ids": [], "label": []}
    for _ in range(n):
        label = rng.randrange(4)
        rows["ids"].append([rng.randrange(label * 500, label * 500 + 700) % 2000 for _ in range(SEQ)])
        rows["label"].append(label)
    return Dataset.from_dict(rows)


def score_batch(batch, scorer):
    with torch.no_grad():
        logits = scorer(torch.tensor(batch["ids"]))
        loss = F.cross_entropy(logits, torch.tensor(batch["label"]), reduction="none")
    return {"difficulty": loss.tolist()}


def loader_for(ds):
    ds = ds.with_format("torch", columns=["ids", "label"])
    return DataLoader(ds, batch_size=16, shuffle=True, drop_last=True)


def main():
    acc = Accelerator(cpu=True)
    torch.manual_seed(0)
    model = Encoder()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ds = make_dataset()
    model, opt = acc.prepare(model, opt)
    step = 0
    for rnd in range(200):
        loader = acc.prepare(loader_for(ds))
        done = 0
        while done < STEPS_PER_ROUND:
            for batch in loader:
                loss = F.cross_entropy(model(batch["ids"]), batch["label"])
                acc.backward(loss)
                opt.step()
                opt.zero_grad()
                step += 1
                done += 1
                if step == 1:
                    acc.print("training begins", flush=True)
                if step % 20 == 0:
                    acc.print(f"round {rnd} step {step} loss {loss.item():.4f}", flush=True)
                if done >= STEPS_PER_ROUND:
                    break
        acc.print(f"scoring training set after round {rnd}", flush=True)
        scorer = Encoder()
        scorer.load_state_dict(acc.unwrap_model(model).state_dict())
        with acc.main_process_first():
            scored = ds.map(score_batch, batched=True, batch_size=128, num_proc=2,
                            fn_kwargs={"scorer": scorer}, desc="score")
        order = sorted(range(len(scored)), key=lambda i: -scored[i]["difficulty"])
        ds = scored.select(order).remove_columns("difficulty")


if __name__ == "__main__":
    main()
