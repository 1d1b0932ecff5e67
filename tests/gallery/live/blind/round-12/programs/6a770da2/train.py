import fcntl
import glob
import os
import random

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset

from heartbeat import Heartbeat, MetricWriter

RUN_DIR = os.environ["RUN_DIR"]
VOCAB = 256


class Sentences(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.rows = [[rng.randrange(1, VOCAB) for _ in range(rng.randint(12, 28))] for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    width = max(map(len, rows))
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    for i, r in enumerate(rows):
        ids[i, :len(r)] = torch.tensor(r)
    return {"ids": ids}


class LM(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        logits = self.out(self.rnn(self.emb(ids[:, :-1]))[0])
        return nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)


def evaluate(acc, model, loader):
    model.eval()
    losses = []
    with torch.no_grad():
        for batch in loader:
            losses.append(acc.gather_for_metrics(model(batch["ids"]).repeat(len(batch["ids"]))))
    model.train()
    return torch.cat(losses).mean().item()


def save(acc, model, step):
    if acc.is_main_process:
        with open(os.path.join(RUN_DIR, ".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            torch.save(acc.unwrap_model(model).state_dict(), os.path.join(RUN_DIR, f"ckpt-{step:06d}.pt"))
            for old in sorted(glob.glob(os.path.join(RUN_DIR, "ckpt-*.pt")))[:-2]:
                os.remove(old)
    acc.wait_for_everyone()


def main():
    torch.set_num_threads(1)
    set_seed(1)
    acc = Accelerator(cpu=True, gradient_accumulation_steps=2)
    Heartbeat(os.path.join(RUN_DIR, f"alive-{acc.process_index}")).start()
    writer = MetricWriter(os.path.join(RUN_DIR, f"metrics-{acc.process_index}.jsonl"))
    writer.start()
    train = DataLoader(Sentences(7200, 0), batch_size=24, shuffle=True, collate_fn=collate, drop_last=True)
    valid = DataLoader(Sentences(310, 1), batch_size=24, collate_fn=collate)
    model = LM()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, opt, train, valid = acc.prepare(model, opt, train, valid)
    step = 0
    for epoch in range(5000):
        for batch in train:
            with acc.accumulate(model):
                loss = model(batch["ids"])
                acc.backward(loss)
                opt.step()
                opt.zero_grad()
            step += 1
            if step == 1:
                acc.print("training begins", flush=True)
            if step % 10 == 0:
                writer.put(step=step, loss=loss.item())
            if step % 100 == 0:
                acc.print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
            if step % 200 == 0:
                acc.print(f"eval {evaluate(acc, model, valid):.4f}", flush=True)
            if step % 300 == 0:
                save(acc, model, step)


if __name__ == "__main__":
    main()
