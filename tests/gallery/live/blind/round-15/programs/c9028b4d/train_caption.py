import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch.utils.data import DataLoader

from data import VOCAB, CaptionData
from scorer import Meteor


class Captioner(nn.Module):
    def __init__(self, dim=192):
        super().__init__()
        self.embed = nn.Embedding(len(VOCAB), dim)
        self.proj = nn.Linear(96, dim)
        self.rnn = nn.GRU(dim, dim, num_layers=2, batch_first=True)
        self.head = nn.Linear(dim, len(VOCAB))

    def forward(self, feat, ids):
        h0 = self.proj(feat).unsqueeze(0).repeat(2, 1, 1)
        out, _ = self.rnn(self.embed(ids), h0.contiguous())
        return self.head(out)

    @torch.no_grad()
    def generate(self, feat, max_len=10):
        ids = torch.ones(feat.size(0), 1, dtype=torch.long)
        for _ in range(max_len):
            nxt = self.forward(feat, ids)[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, nxt], dim=1)
        return ids[:, 1:]


def decode(row):
    words = []
    for t in row.tolist():
        if t == 2:
            break
        if t > 2:
            words.append(VOCAB[t])
    return " ".join(words)


def evaluate(accelerator, model, loader, data, meteor):
    model.eval()
    results = []
    for batch in loader:
        out = accelerator.unwrap_model(model).generate(batch["feat"])
        results.extend((int(i), decode(row)) for i, row in zip(batch["id"], out))
    results = gather_object(results)
    if accelerator.is_main_process:
        res = {i: [text] for i, text in results}
        gts = {i: data.reference(i) for i in res}
        score, _ = meteor.compute_score(gts, res)
        empty = sum(1 for v in res.values() if not v[0])
        accelerator.print(f"  eval: {len(res)} captions, meteor {score:.4f}, empty {empty}")
    accelerator.wait_for_everyone()
    model.train()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--eval-every", type=int, default=100)
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(3)
    accelerator = Accelerator(cpu=True)
    train_data, val_data = CaptionData("train", 2000), CaptionData("val", 240)
    train_loader = DataLoader(train_data, batch_size=args.batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(val_data, batch_size=40)
    model = Captioner()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, train_loader, val_loader = accelerator.prepare(
        model, optimizer, train_loader, val_loader)
    meteor = Meteor() if accelerator.is_main_process else None

    step = 0
    start = time.time()
    while step < args.steps:
        for batch in train_loader:
            logits = model(batch["feat"], batch["ids"][:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), batch["ids"][:, 1:].flatten(), ignore_index=0)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            step += 1
            if step % 20 == 0:
                accelerator.print(f"step {step} loss {loss.item():.3f} {time.time() - start:.1f}s")
            if step % args.eval_every == 0:
                evaluate(accelerator, model, val_loader, val_data, meteor)
            if step >= args.steps:
                break
    if meteor is not None:
        meteor.close()
    accelerator.end_training()


if __name__ == "__main__":
    main()
