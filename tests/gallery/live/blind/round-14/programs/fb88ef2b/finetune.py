import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from data import Translations
from scoring import score_in_background


class Model(nn.Module):
    def __init__(self, vocab=256, dim=96, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 4, 256, batch_first=True, dropout=0.0) for _ in range(layers)
        )
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


@torch.no_grad()
def validate(model, data, epoch, limit, rank):
    pairs = data.valid[:limit]
    texts = []
    for i in range(0, len(pairs), 32):
        chunk = pairs[i : i + 32]
        ids = torch.zeros(len(chunk), 24, dtype=torch.long)
        for row, src in zip(ids, chunk):
            row[: len(src)] = torch.tensor(src)
        best = model(ids).argmax(-1)
        texts += [(data.detokenize(b[: len(s)].tolist()), data.detokenize(s)) for b, s in zip(best, chunk)]
    rows = score_in_background(texts)
    total = torch.tensor([sum(r["p1"] for r in rows), sum(r["p2"] for r in rows), float(len(rows))])
    dist.all_reduce(total)
    if rank == 0:
        p1, p2, n = total.tolist()
        print(f"epoch {epoch} valid n={int(n)} p1 {p1 / n:.3f} p2 {p2 / n:.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps-per-epoch", type=int, default=50)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    model = DDP(Model())
    optim = torch.optim.SGD(model.parameters(), lr=0.1)
    data = Translations(rank, world)
    for epoch in range(args.epochs):
        model.train()
        start = time.time()
        for _ in range(args.steps_per_epoch):
            ids = torch.tensor(data.batch(args.batch_size, 16))
            loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
            loss.backward()
            optim.step()
            optim.zero_grad()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f} {args.steps_per_epoch / (time.time() - start):.1f} it/s")
        model.eval()
        validate(model.module, data, epoch, limit=150 * (epoch + 1), rank=rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
