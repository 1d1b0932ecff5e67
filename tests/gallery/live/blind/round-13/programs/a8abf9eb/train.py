import os
import time

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

from events import SummaryWriter
from model import Encoder

LOG_FROM = 60


def build_data(n=6000, length=48):
    g = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 256, (n, length), generator=g)
    return TensorDataset(ids, (ids < 128).sum(1) % 4)


def main():
    acc = Accelerator(cpu=True)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Encoder()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(build_data(), batch_size=8, shuffle=True)
    model, opt, loader = acc.prepare(model, opt, loader)
    os.makedirs("events", exist_ok=True)
    writer = None
    step, last = 0, time.time()
    for epoch in range(1000):
        for ids, y in loader:
            loss = F.cross_entropy(model(ids), y)
            acc.backward(loss)
            norm = acc.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
            step += 1
            if step == LOG_FROM:
                writer = SummaryWriter(f"events/rank{acc.process_index}.ev", flush_secs=0)
            if writer is not None:
                writer.add_scalar("loss", loss.item(), step)
                writer.add_scalar("grad_norm", norm, step)
            if step % 20 == 0:
                acc.print(f"epoch {epoch} step {step} loss {loss.item():.4f} "
                          f"{(time.time() - last) / 20 * 1e3:.0f} ms/step", flush=True)
                last = time.time()


if __name__ == "__main__":
    main()
