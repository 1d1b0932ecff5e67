import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from torch.utils.data import DataLoader

from pairs import VOCAB, PairDataset
from sampler import NoDuplicatesBatchSampler


class Encoder(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.enc = nn.TransformerEncoderLayer(dim, 4, 256, dropout=0.0, batch_first=True)

    def forward(self, q, a):
        return tuple(F.normalize(self.enc(self.emb(t)).mean(1), dim=-1) for t in (q, a))


def main():
    torch.set_num_threads(1)
    acc = Accelerator(cpu=True)
    torch.manual_seed(0)
    data = PairDataset()
    sampler = NoDuplicatesBatchSampler(data, 16, acc.process_index, acc.num_processes)
    loader = DataLoader(data, batch_sampler=sampler)
    model = Encoder()
    model, opt = acc.prepare(model, torch.optim.AdamW(model.parameters(), lr=5e-4))
    acc.print(f"{len(data)} pairs, {len(sampler)} batches per epoch, training begins", flush=True)
    t0, step = time.time(), 0
    for epoch in range(50):
        sampler.set_epoch(epoch)
        for q, a in loader:
            zq, za = model(q, a)
            loss = F.cross_entropy(20 * zq @ za.T, torch.arange(len(q)))
            opt.zero_grad()
            acc.backward(loss)
            opt.step()
            if step % 10 == 0:
                acc.print(f"epoch {epoch} step {step} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)
            step += 1
    acc.end_training()


if __name__ == "__main__":
    main()
