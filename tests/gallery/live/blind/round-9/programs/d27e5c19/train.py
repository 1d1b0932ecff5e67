import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

from stopping import EarlyStopping


class Regressor(nn.Module):
    def __init__(self, features=64, hidden=384, layers=4):
        super().__init__()
        dims = [features] + [hidden] * layers
        self.body = nn.Sequential(*[m for a, b in zip(dims, dims[1:]) for m in (nn.Linear(a, b), nn.GELU())])
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(-1)


def build_data(n=48000, features=64):
    g = torch.Generator().manual_seed(3)
    w = torch.randn(features, generator=g) / math.sqrt(features)
    x = torch.randn(n, features, generator=g)
    y = torch.tanh(x @ w) + 0.3 * torch.randn(n, generator=g)
    return TensorDataset(x, y)


def main():
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    set_seed(17)

    loader = DataLoader(build_data(), batch_size=64, shuffle=True, drop_last=True)
    model = Regressor()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    stopper = EarlyStopping(patience=60, min_delta=1e-3, warmup=150, smooth=0.9)

    step = 0
    stop = False
    for epoch in range(200):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = F.mse_loss(model(x), y)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            step += 1
            if step % 50 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.4f} best {stopper.best:.4f}", flush=True)
            if stopper.update(loss.item()):
                stop = True
                break
        if stop:
            break

    accelerator.wait_for_everyone()
    unwrapped = accelerator.unwrap_model(model)
    os.makedirs("out", exist_ok=True)
    accelerator.save(unwrapped.state_dict(), "out/model.pt")
    accelerator.print(f"finished after {step} steps, best {stopper.best:.4f}", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
