import os
import time

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from reviews import build
from tracking import Tracker


class Encoder(nn.Module):
    def __init__(self, vocab=640, dim=128, classes=4):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.1, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(dim, classes)

    def forward(self, ids):
        pad = ids == 0
        h = self.body(self.emb(ids), src_key_padding_mask=pad)
        h = h.masked_fill(pad[..., None], 0).sum(1) / (~pad).sum(1, keepdim=True)
        return self.head(h)


def collate(batch):
    size = max(len(b["ids"]) for b in batch)
    ids = torch.tensor([b["ids"] + [0] * (size - len(b["ids"])) for b in batch])
    return ids, torch.tensor([b["label"] for b in batch])


@torch.no_grad()
def evaluate(accelerator, model, loader):
    model.eval()
    logits, labels = [], []
    for ids, y in loader:
        out, y = accelerator.gather_for_metrics((model(ids), y))
        logits.append(out)
        labels.append(y)
    model.train()
    return torch.cat(logits), torch.cat(labels)


def calibrate(logits, labels, rounds=250):
    grid = np.linspace(0.3, 3.0, rounds)
    nll = [F.cross_entropy(logits / t, labels).item() for t in grid]
    return float(grid[int(np.argmin(nll))])


def main():
    torch.set_num_threads(1)
    work = os.environ["WORK_DIR"]
    accelerator = Accelerator(cpu=True)
    set_seed(7)
    with accelerator.main_process_first():
        train, val = build(6000, 0, "train"), build(500, 1, "val")
    tracker = Tracker() if accelerator.is_main_process else None
    model = Encoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    train_loader = DataLoader(train, batch_size=8, shuffle=True, collate_fn=collate, drop_last=True,
                              num_workers=1, persistent_workers=True)
    val_loader = DataLoader(val, batch_size=16, collate_fn=collate)
    model, optimizer, train_loader, val_loader = accelerator.prepare(model, optimizer, train_loader, val_loader)
    step, t = 0, time.perf_counter()
    for epoch in range(1000):
        for ids, y in train_loader:
            loss = F.cross_entropy(model(ids), y, label_smoothing=0.05)
            optimizer.zero_grad()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            if tracker:
                tracker.log(step=step, loss=loss.item())
            if step % 20 == 0:
                now = time.perf_counter()
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.3f} {20 / (now - t):.1f} it/s",
                                  flush=True)
                t = now
            if step % 200 == 0:
                logits, labels = evaluate(accelerator, model, val_loader)
                if accelerator.is_main_process:
                    temperature = calibrate(logits, labels)
                    acc = (logits.argmax(-1) == labels).float().mean().item()
                    print(f"eval at {step}: accuracy {acc:.3f} temperature {temperature:.2f}", flush=True)
                    tracker.log(step=step, accuracy=acc, temperature=temperature)
                accelerator.wait_for_everyone()
            if step % 300 == 0:
                accelerator.save_state(f"{work}/state")
    accelerator.end_training()
