import argparse
import time
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from torch.utils.data import DataLoader

from ema import Ema
from publish import Publisher
from speech import FrameBudgetBatches, Utterances, collate


class Tagger(nn.Module):
    def __init__(self, dim=96):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(40, dim, 5, 2, 2), nn.GELU(), nn.Conv1d(dim, dim, 5, 2, 2), nn.GELU(),
                                  nn.Conv1d(dim, dim, 3, 1, 1), nn.GELU())
        self.head = nn.Linear(dim, 10)

    def forward(self, x, mask):
        h = self.conv((x * mask.unsqueeze(-1)).transpose(1, 2))
        m = F.adaptive_avg_pool1d(mask.unsqueeze(1), h.shape[-1])
        return self.head((h * m).sum(-1) / m.sum(-1).clamp_min(1e-3))


@torch.no_grad()
def evaluate(accelerator, model, loader):
    hits = total = 0
    for x, mask, y in loader:
        pred = model(x, mask).argmax(-1)
        pred, y = accelerator.gather_for_metrics((pred, y))
        hits += (pred == y).sum().item()
        total += y.numel()
    return hits / total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--exp", default="exp")
    p.add_argument("--budget", type=int, default=2400)
    p.add_argument("--eval-every", type=int, default=300)
    p.add_argument("--epochs", type=int, default=100000)
    args = p.parse_args()
    torch.set_num_threads(1)
    acc = Accelerator(cpu=True)
    torch.manual_seed(0)
    train = Utterances(3000, seed=1)
    sampler = FrameBudgetBatches(train.frames, args.budget, acc.process_index, acc.num_processes)
    loader = DataLoader(train, batch_sampler=sampler, collate_fn=collate)
    model = Tagger()
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    valid = DataLoader(Utterances(250, seed=2), 16, collate_fn=collate)
    model, opt, valid = acc.prepare(model, opt, valid)
    ema = Ema(acc.unwrap_model(model))
    publisher = Publisher(args.exp) if acc.is_main_process else None

    step, t0 = 0, time.time()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, mask, y in loader:
            loss = F.cross_entropy(model(x, mask), y)
            acc.backward(loss)
            acc.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
            ema.update(acc.unwrap_model(model))
            step += 1
            if step % 25 == 0:
                mean = acc.reduce(loss.detach(), "mean").item()
                acc.print(f"epoch {epoch} step {step} loss {mean:.3f} {(time.time() - t0) * 40:.0f} ms/step", flush=True)
                t0 = time.time()
            if step % args.eval_every == 0:
                score = evaluate(acc, ema.model, valid)
                acc.print(f"eval step {step} accuracy {score:.3f}", flush=True)
                if acc.is_main_process:
                    out = Path(args.exp) / "work" / f"step-{step:06d}"
                    out.mkdir(parents=True)
                    torch.save(ema.model.state_dict(), out / "ema.pt")
                    publisher.submit(out)
                acc.wait_for_everyone()


if __name__ == "__main__":
    main()
