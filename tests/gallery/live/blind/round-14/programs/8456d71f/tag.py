import argparse
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from torch.utils.data import DataLoader

from tagdata import Sentences, collate
from tracking import BackgroundTracker


class Tagger(nn.Module):
    def __init__(self, vocab=400, dim=64, tags=12):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * dim, tags)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


def evaluate(accelerator, model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for ids, tags in loader:
            pred, gold = accelerator.gather_for_metrics((model(ids).argmax(-1), tags))
            right += ((pred == gold) & (gold >= 0)).sum().item()
            total += (gold >= 0).sum().item()
    model.train()
    return right / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--epochs", type=int, default=2000)
    args = parser.parse_args()

    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    train = DataLoader(Sentences(4003, 1), batch_size=12, shuffle=True, collate_fn=collate,
                       num_workers=1, persistent_workers=True)
    valid = DataLoader(Sentences(301, 2), batch_size=12, collate_fn=collate)
    model = Tagger()
    optim = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model, optim, train, valid = accelerator.prepare(model, optim, train, valid)
    tracker = BackgroundTracker(os.path.join(args.out, "metrics.jsonl"), accelerator.process_index)
    step, start = 0, time.time()
    for epoch in range(args.epochs):
        for ids, tags in train:
            loss = F.cross_entropy(model(ids).flatten(0, 1), tags.flatten(), ignore_index=-100)
            accelerator.backward(loss)
            optim.step()
            optim.zero_grad()
            step += 1
            if step % 10 == 0:
                tracker.log(step=step, loss=loss.item())
            if step % 50 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.3f} {step / (time.time() - start):.1f} it/s")
        acc = evaluate(accelerator, model, valid)
        accelerator.print(f"epoch {epoch} valid accuracy {acc:.3f}")
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            torch.save(accelerator.unwrap_model(model).state_dict(), os.path.join(args.out, "last.pt"))


if __name__ == "__main__":
    main()
