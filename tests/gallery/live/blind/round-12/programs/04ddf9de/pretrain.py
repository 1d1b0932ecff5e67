import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader

from data import TextStream


class TinyLM(nn.Module):
    def __init__(self, vocab=512, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids[:, -17:-1]))[0])


def main():
    torch.set_num_threads(1)
    acc = Accelerator(cpu=True)
    torch.manual_seed(0)
    model = TinyLM()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(TextStream(), batch_size=16)
    model, opt, loader = acc.prepare(model, opt, loader)
    tick, seen = time.time(), 0
    for step, batch in enumerate(loader, 1):
        ids = batch["ids"]
        logits = model(ids)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, -16:].flatten())
        acc.backward(loss)
        opt.step()
        opt.zero_grad()
        seen += ids.numel() * acc.num_processes
        if step == 1:
            acc.print("training begins", flush=True)
        if step % 20 == 0:
            rate = seen / (time.time() - tick)
            acc.print(f"step {step} loss {loss.item():.3f} tokens/s {rate:.0f}", flush=True)
            tick, seen = time.time(), 0
        if step >= 20000:
            break


if __name__ == "__main__":
    main()
