import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from stream import VOCAB, pairs


class Ranker(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=0)
        layer = nn.TransformerEncoderLayer(dim, 4, 256, batch_first=True, dropout=0.0)
        self.enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.score = nn.Linear(dim, 1)

    def forward(self, ids):
        h = self.enc(self.emb(ids), src_key_padding_mask=ids == 0)
        return self.score(h[:, 0]).squeeze(1)


def collate(rows):
    seqs = [r["query"] + r["doc"] for r in rows]
    width = max(map(len, seqs))
    return torch.tensor([s + [0] * (width - len(s)) for s in seqs]), torch.tensor([r["grade"] for r in rows])


@torch.no_grad()
def evaluate(model, rank, world):
    model.eval()
    stat = torch.zeros(2)
    for ids, grade in DataLoader(pairs(list(range(100, 104)), 180, rank, world, shuffle=False), 16, collate_fn=collate):
        stat += torch.tensor([(model(ids) - grade).abs().sum().item(), len(grade)])
    dist.all_reduce(stat)
    model.train()
    return (stat[0] / stat[1]).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", required=True)
    p.add_argument("--epochs", type=int, default=1000)
    args = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(Ranker())
    opt = torch.optim.AdamW(model.parameters(), 3e-4)
    for epoch in range(args.epochs):
        loader = DataLoader(pairs(list(range(8)), 300, rank, world, epoch), 16, collate_fn=collate)
        t0, seen = time.time(), 0
        with Join([model]):
            for ids, grade in loader:
                loss = nn.functional.mse_loss(model(ids), grade)
                opt.zero_grad()
                loss.backward()
                opt.step()
                seen += 1
                if rank == 0 and seen % 20 == 0:
                    print(f"epoch {epoch} step {seen} loss {loss.item():.4f} {(time.time() - t0) / seen * 1e3:.0f} ms/step", flush=True)
        mae = evaluate(model.module, rank, world)
        print(f"rank {rank} epoch {epoch}: {seen} batches, val mae {mae:.4f}", flush=True)
        if rank == 0:
            torch.save({"model": model.module.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, os.path.join(args.out, "last.pt.tmp"))
            os.replace(os.path.join(args.out, "last.pt.tmp"), os.path.join(args.out, "last.pt"))
        dist.barrier()


if __name__ == "__main__":
    main()
