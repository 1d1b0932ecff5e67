import os
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

from csv_tracker import CSVTracker
from net import ResMLP, layer_stats

torch.set_num_threads(1)


def make_table(n=30_000, features=40):
    g = torch.Generator().manual_seed(8)
    x = torch.randn(n, features, generator=g)
    w = torch.randn(features, generator=g)
    return TensorDataset(x, torch.sin(x @ w / 6) + 0.3 * x[:, 0] * x[:, 1])


def main():
    cfg = {"lr": 3e-4, "batch_size": 64, "epochs": 200}
    tracker = CSVTracker("resmlp", os.environ["RUN_DIR"])
    acc = Accelerator(cpu=True, log_with=tracker)
    acc.init_trackers("tabular", config=cfg)
    set_seed(2)
    model = ResMLP()
    opt = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])
    loader = DataLoader(make_table(), batch_size=cfg["batch_size"], shuffle=True, drop_last=True)
    model, opt, loader = acc.prepare(model, opt, loader)
    step, t0 = 0, time.time()
    for epoch in range(cfg["epochs"]):
        for x, y in loader:
            loss = (model(x) - y).pow(2).mean()
            opt.zero_grad()
            acc.backward(loss)
            opt.step()
            step += 1
            if acc.is_main_process:
                acc.log({"loss": loss.item(), "epoch": epoch, **layer_stats(acc.unwrap_model(model))}, step=step)
            if step % 50 == 0:
                acc.print(f"epoch {epoch} step {step} loss {loss.item():.4f} {50 / (time.time() - t0):.1f} it/s")
                t0 = time.time()
    acc.end_training()


if __name__ == "__main__":
    main()
