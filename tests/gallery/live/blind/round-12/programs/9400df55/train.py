import glob
import os

import torch
from accelerate import Accelerator, PartialState
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tracker import StoreTracker

RUN_DIR = os.environ["RUN_DIR"]
SAVE_TOTAL_LIMIT = 2


def rotate(limit):
    paths = sorted(glob.glob(os.path.join(RUN_DIR, "ckpt-*.pt")))
    for old in paths[:-limit]:
        os.remove(old)


def main():
    torch.set_num_threads(1)
    set_seed(7)
    PartialState(cpu=True)
    tracker = StoreTracker(RUN_DIR)
    acc = Accelerator(cpu=True, log_with=tracker)
    acc.init_trackers("regression")
    x = torch.randn(3000, 64)
    y = (x[:, :8].sum(1, keepdim=True)).sin()
    loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    model, opt, loader = acc.prepare(model, opt, loader)
    step = 0
    for epoch in range(5):
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            acc.backward(loss)
            opt.step()
            opt.zero_grad()
            step += 1
            if step == 1:
                acc.print("training begins", flush=True)
            if step % 10 == 0:
                acc.log({"loss": loss.item()}, step=step)
            if step % 25 == 0:
                acc.print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
                if acc.is_main_process:
                    path = os.path.join(RUN_DIR, f"ckpt-{step:06d}.pt")
                    torch.save(acc.unwrap_model(model).state_dict(), path)
                    tracker.log_artifact(path)
                    rotate(SAVE_TOTAL_LIMIT)
    acc.print("training finished", flush=True)
    tracker_list = acc.trackers
    for t in tracker_list:
        t.finish()
    acc.wait_for_everyone()
    if acc.is_main_process:
        torch.save(acc.unwrap_model(model).state_dict(), os.path.join(RUN_DIR, "final.pt"))
    acc.wait_for_everyone()


if __name__ == "__main__":
    main()
