import time
from datetime import timedelta

import torch
import torch.nn as nn
from accelerate import Accelerator, InitProcessGroupKwargs
from torch.utils.data import DataLoader

from staging import Reviews, stage
from telemetry import Telemetry


class Classifier(nn.Module):
    def __init__(self, vocab=500, dim=32):
        super().__init__()
        self.embed = nn.EmbeddingBag(vocab, dim)
        self.head = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, ids):
        return self.head(self.embed(ids))


def main():
    torch.set_num_threads(1)
    accelerator = Accelerator(
        cpu=True, kwargs_handlers=[InitProcessGroupKwargs(backend="gloo", timeout=timedelta(hours=1))]
    )
    telemetry = Telemetry("reviews-cls", enabled=accelerator.is_main_process)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(Reviews(), batch_size=8, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    step = 0
    for epoch in range(100):
        for batch in stage(loader, telemetry):
            began = time.time()
            loss = nn.functional.cross_entropy(model(batch.get("ids")), batch.get("label"))
            optimizer.zero_grad()
            accelerator.backward(loss)
            norm = accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            time.sleep(0.08)
            step += 1
            telemetry.emit("loss", step=step, value=loss.item())
            telemetry.emit("grad_norm", step=step, value=float(norm))
            telemetry.emit("speed", step=step, value=time.time() - began)
            if step % 20 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
                telemetry.write_report()
    accelerator.end_training()


if __name__ == "__main__":
    main()
