import time

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tracking import AsyncArtifactLogger

EPOCHS = 3


def make_data(n=1440, dim=64):
    g = torch.Generator().manual_seed(5)
    x = torch.randn(n, dim, generator=g)
    return TensorDataset(x, (x[:, :8].sum(-1) > 0).long())


def main():
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 2))
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(make_data(), batch_size=8, shuffle=True)
    model, optim, loader = accelerator.prepare(model, optim, loader)
    tracker = AsyncArtifactLogger("ft-tiny") if accelerator.is_main_process else None

    step = 0
    for epoch in range(EPOCHS):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            time.sleep(0.15)
            optim.zero_grad()
            accelerator.backward(loss)
            optim.step()
            step += 1
            if step % 10 == 0:
                mean = accelerator.reduce(loss.detach(), "mean").item()
                accelerator.print(f"epoch {epoch} step {step} loss {mean:.4f}", flush=True)
                if tracker:
                    tracker.log_metrics(step, loss=mean)
        accelerator.wait_for_everyone()
        if tracker:
            tracker.log_model(step, accelerator.unwrap_model(model))
    accelerator.print("done", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
