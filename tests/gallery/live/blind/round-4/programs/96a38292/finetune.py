import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from streaming.dataset import StreamingTokens
from utils import CSVLogger, tie_to_parent


class LM(nn.Module):
    def __init__(self, vocab=1000, dim=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, x):
        h, _ = self.rnn(self.emb(x))
        return self.head(h)


def fit(model, dataset, loader, optimizer, logger, epochs):
    lossf = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        dataset.set_epoch(epoch)
        t0, seen = time.time(), 0
        for step, batch in enumerate(loader):
            logits = model(batch[:, :-1])
            loss = lossf(logits.flatten(0, 1), batch[:, 1:].flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            seen += batch.size(0)
            if step % 10 == 0:
                logger.log(epoch=epoch, step=step, loss=round(loss.item(), 4))
        logger.flush()
        dist.barrier()
        print(f"epoch {epoch} done: {seen} samples in {time.time() - t0:.1f}s")


def main():
    tie_to_parent()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    ds = StreamingTokens(sys.argv[1], 32, rank, world)
    loader = DataLoader(ds, batch_size=24, num_workers=1, drop_last=True,
                        worker_init_fn=lambda _: tie_to_parent())
    model = DDP(LM())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    fit(model, ds, loader, opt, CSVLogger(f"metrics.{rank}.csv", rank), epochs=50)


if __name__ == "__main__":
    main()
