import time

import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed

from molecules import Structures, get_loader


class EnergyModel(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.atom = nn.Sequential(nn.Linear(16, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.atom(x).sum((1, 2))


def main():
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    set_seed(0)
    loader = get_loader(Structures(960), batch_size=16, workers=1, shuffle=True)
    model = EnergyModel()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    model, opt, loader = accelerator.prepare(model, opt, loader)
    accelerator.print(f"{len(loader)} steps per epoch, {accelerator.num_processes} processes")
    for epoch in range(2000):
        t0 = time.time()
        total = torch.zeros(())
        for x, e in loader:
            loss = nn.functional.mse_loss(model(x), e)
            accelerator.backward(loss)
            opt.step()
            opt.zero_grad()
            total += loss.detach()
        mean = accelerator.reduce(total / len(loader), reduction="mean")
        accelerator.print(f"epoch {epoch:4d} mse {mean.item():.3f} ({time.time() - t0:.1f}s)", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
