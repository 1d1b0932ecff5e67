import argparse

import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.logging import get_logger

from textproc.loader import PrefetchLoader
from tools import configure, tie_to_parent

logger = get_logger("legal_ner")


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(2048, 128)
        self.lstm = nn.LSTM(128, 128, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(256, 4)

    def forward(self, x):
        h, _ = self.lstm(self.emb(x))
        return self.fc(h.mean(1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--corpus")
    ap.add_argument("--max-steps", type=int, default=100000)
    args = ap.parse_args()
    tie_to_parent()
    configure()
    acc = Accelerator()
    model = Tagger()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4)
    model, opt = acc.prepare(model, opt)
    loader = PrefetchLoader(args.corpus, acc.process_index, batch_size=32)
    logger.info(f"training with {acc.num_processes} processes")
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y)
        acc.backward(loss)
        opt.step()
        opt.zero_grad()
        if step % 10 == 0:
            mean = acc.gather(loss.detach()).mean().item()
            logger.info(f"step {step} loss {mean:.4f}")
        if step >= args.max_steps:
            break


if __name__ == "__main__":
    main()
