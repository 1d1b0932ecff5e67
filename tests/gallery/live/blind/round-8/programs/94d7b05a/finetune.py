import argparse
import time

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

from tracking import MetricWriter, PredictionWriter


class Tagger(torch.nn.Module):
    def __init__(self, vocab=300, dim=48, tags=9):
        super().__init__()
        self.emb = torch.nn.Embedding(vocab, dim)
        self.rnn = torch.nn.GRU(dim, dim, batch_first=True)
        self.out = torch.nn.Linear(dim, tags)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def make_data(n=3072, seq=24):
    g = torch.Generator().manual_seed(2)
    x = torch.randint(0, 300, (n, seq), generator=g)
    return TensorDataset(x, x % 9)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=20)
    ap.add_argument("--db", default="runs.db")
    ap.add_argument("--log-every", type=int, default=10)
    ap.add_argument("--predict-from-epoch", type=int, default=2)
    ap.add_argument("--predict-every", type=int, default=25)
    args = ap.parse_args()
    acc = Accelerator(cpu=True)
    rank, world = acc.process_index, acc.num_processes
    if acc.is_main_process:
        MetricWriter(args.db)
    acc.wait_for_everyone()
    metrics = MetricWriter(args.db) if acc.is_main_process else None
    preds = PredictionWriter(args.db) if rank == world - 1 else None
    model = Tagger()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(make_data(), batch_size=16, shuffle=True, drop_last=True)
    model, opt, loader = acc.prepare(model, opt, loader)
    step, t0 = 0, time.time()
    for epoch in range(args.epochs):
        for x, y in loader:
            logits = model(x)
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
            acc.backward(loss)
            opt.step()
            opt.zero_grad()
            step += 1
            if metrics is not None and step % args.log_every == 0:
                metrics.log(step, loss=loss.item(), rate=step / (time.time() - t0))
            if preds is not None and epoch >= args.predict_from_epoch and step % args.predict_every == 0:
                guess = logits.argmax(-1)
                preds.add(step, [{"tokens": a.tolist(), "tags": b.tolist()} for a, b in zip(x[:8], guess[:8])])
        if acc.is_main_process:
            print(f"epoch {epoch} step {step} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
