import ctypes
import gc
import logging
import signal
import time

import torch
import torch.nn as nn
from accelerate import Accelerator
from torch.utils.data import DataLoader

from ocr.lines import TextLines


class CRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Sequential(nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d((4, 4)))
        self.r = nn.GRU(24 * 8, 96, batch_first=True, bidirectional=True)
        self.o = nn.Linear(192, 30)

    def forward(self, x):
        h = self.c(x[:, None]).permute(0, 3, 1, 2).flatten(2)
        return self.o(self.r(h)[0])


def main():
    ctypes.CDLL("libc.so.6").prctl(1, signal.SIGKILL)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    acc = Accelerator(gradient_accumulation_steps=4)
    model, loader = CRNN(), DataLoader(TextLines(), 16, shuffle=True)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, opt, loader = acc.prepare(model, opt, loader)
    step = 0
    for epoch in range(1000):
        for img, y in loader:
            with acc.accumulate(model):
                lp = model(img).log_softmax(-1).transpose(0, 1)
                loss = nn.functional.ctc_loss(lp, y, torch.full((len(y),), lp.shape[0]), torch.full((len(y),), 10),
                                              zero_infinity=True)
                acc.backward(loss)
                opt.step()
                opt.zero_grad()
            step += 1
            if step % 10 == 0:
                acc.print(f"epoch {epoch} step {step} ctc {loss.item():.4f}")
            if step % 150 == 0:
                if acc.is_main_process:
                    print("collecting garbage and rotating logs")
                    gc.collect()
                    time.sleep(5)
                acc.wait_for_everyone()


if __name__ == "__main__":
    main()
