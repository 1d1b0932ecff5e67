import argparse
import gc
import os
import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader

from buckets import LengthBuckets
from export import SystemStats, run_exporter


class Scorer(nn.Module):
    def __init__(self, vocab=500, d=48):
        super().__init__()
        self.e = nn.Embedding(vocab, d)
        self.r = nn.GRU(d, d, batch_first=True)
        self.o = nn.Linear(d, 1)

    def forward(self, x):
        return self.o(self.r(self.e(x))[0].mean(1))[:, 0]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--snapshot-every", type=int, default=180)
    a = p.parse_args()
    acc = Accelerator(cpu=True)
    torch.manual_seed(0)
    model = Scorer()
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    model, opt = acc.prepare(model, opt)
    stats = SystemStats().start()
    loader = iter(DataLoader(LengthBuckets(acc.process_index), batch_size=None, num_workers=1))
    for step in range(1, a.steps + 1):
        x, y = next(loader)
        loss = (model(x) - y).square().mean()
        acc.backward(loss)
        opt.step()
        opt.zero_grad()
        time.sleep(0.07)
        if step % 20 == 0:
            mean = acc.reduce(loss.detach(), "mean")
            acc.print(f"{step} loss {mean.item():.4f}", flush=True)
        if step % a.snapshot_every == 0:
            acc.wait_for_everyone()
            if acc.is_main_process:
                torch.save(acc.unwrap_model(model).state_dict(), f"snap_{step}.pt")
                acc.print("exporter:", run_exporter(16), flush=True)
                old = f"snap_{step - 2 * a.snapshot_every}.pt"
                if os.path.exists(old):
                    os.remove(old)
            acc.wait_for_everyone()
            gc.collect()
    stats.close()


if __name__ == "__main__":
    main()
