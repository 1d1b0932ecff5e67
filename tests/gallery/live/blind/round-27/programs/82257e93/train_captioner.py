import time
from datetime import timedelta

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator, InitProcessGroupKwargs, debug_launcher
from accelerate.utils import gather_object, set_seed
from torch.utils.data import DataLoader, Dataset

from meteor import Meteor

NOUNS = ["dog", "cat", "man", "woman", "horse", "train", "bus", "bird", "child", "boat"]
VERBS = ["runs", "sits", "stands", "jumps", "waits", "sleeps"]
PLACES = ["street", "field", "beach", "kitchen", "station", "park", "river", "garden"]
VOCAB = ["<s>", "a", "on", "the"] + NOUNS + VERBS + PLACES
LENGTH = 6


class Captions(Dataset):
    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        pick = lambda words: [words[int(i)] for i in torch.randint(len(words), (count,), generator=g)]
        self.texts = [f"a {n} {v} on the {p}" for n, v, p in zip(pick(NOUNS), pick(VERBS), pick(PLACES))]
        self.ids = torch.tensor([[VOCAB.index(w) for w in t.split()] for t in self.texts])
        proj = torch.randn(len(VOCAB), 24, generator=torch.Generator().manual_seed(1))
        self.feats = F.one_hot(self.ids, len(VOCAB)).float().sum(1) @ proj

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"feat": self.feats[i], "ids": self.ids[i], "index": i}


class Captioner(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(24, 64), nn.Tanh(), nn.Linear(64, LENGTH * len(VOCAB)))

    def forward(self, feat):
        return self.net(feat).view(-1, LENGTH, len(VOCAB))


def evaluate(accelerator, model, loader, dataset, scorer):
    model.eval()
    local = []
    for batch in loader:
        with torch.no_grad():
            tokens = model(batch["feat"]).argmax(-1)
        time.sleep(0.05)
        for i, row in zip(batch["index"].tolist(), tokens.tolist()):
            local.append((i, " ".join(VOCAB[t] for t in row)))
    model.train()
    hypotheses = dict(gather_object(local))
    if accelerator.is_main_process:
        keys = sorted(hypotheses)
        mean, _ = scorer.compute_score([dataset.texts[k] for k in keys], [hypotheses[k] for k in keys])
        print(f"eval: meteor {mean:.4f} over {len(keys)} captions", flush=True)


def main():
    set_seed(5)
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(minutes=40))])
    train_data, val_data = Captions(480, seed=2), Captions(90, seed=3)
    train_loader = DataLoader(train_data, batch_size=8, shuffle=True)
    val_loader = DataLoader(val_data, batch_size=10)
    model = Captioner()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    model, optimizer, train_loader, val_loader = accelerator.prepare(model, optimizer, train_loader, val_loader)
    scorer = Meteor() if accelerator.is_main_process else None
    step = 0
    for epoch in range(1000):
        for batch in train_loader:
            loss = F.cross_entropy(model(batch["feat"]).flatten(0, 1), batch["ids"].flatten())
            time.sleep(0.08)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step % 10 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        evaluate(accelerator, model, val_loader, val_data, scorer)
        accelerator.wait_for_everyone()


if __name__ == "__main__":
    debug_launcher(main, num_processes=3)
