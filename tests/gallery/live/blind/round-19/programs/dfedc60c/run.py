import argparse
import json
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader

from basins import FORCINGS, HourlyBasins


class RunoffModel(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.down = nn.Conv1d(FORCINGS + 4, hidden, 24, stride=12)
        self.lstm = nn.LSTM(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        h, _ = self.lstm(self.down(x.transpose(1, 2)).transpose(1, 2))
        return self.head(h[:, -1])


def make_worker_init(threads):
    def worker_init(worker_id):
        torch.set_num_threads(threads)

    return worker_init


def nse_loss(pred, obs):
    return ((pred - obs) ** 2 / (obs.std() + 0.1) ** 2).mean()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--config", required=True)
    cfg = json.load(open(p.parse_args().config))

    accelerator = Accelerator(cpu=True)
    torch.set_num_threads(cfg["threads"])
    set_seed(cfg["seed"])
    data = HourlyBasins(cfg["basins"], cfg["years"], cfg["seq_length"], cfg["seed"])
    loader = DataLoader(
        data, cfg["batch_size"], shuffle=True, drop_last=True, num_workers=cfg["num_workers"],
        worker_init_fn=make_worker_init(cfg["threads"]), persistent_workers=True,
    )
    model = RunoffModel(cfg["hidden_size"])
    opt = torch.optim.Adam(model.parameters(), cfg["learning_rate"])
    model, opt, loader = accelerator.prepare(model, opt, loader)
    accelerator.print(f"{len(data)} samples, {len(loader)} batches per rank", flush=True)

    for epoch in range(cfg["epochs"]):
        t0 = time.time()
        for k, (x, q) in enumerate(loader, 1):
            loss = nse_loss(model(x), q)
            opt.zero_grad()
            accelerator.backward(loss)
            opt.step()
            if k % 5 == 0:
                accelerator.print(f"epoch {epoch} batch {k} loss {loss.item():.3f} {(time.time() - t0) / k:.2f} s/batch", flush=True)
    accelerator.wait_for_everyone()


if __name__ == "__main__":
    main()
