import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from packing import CatDataset, SFTDataset


class TinyLM(nn.Module):
    def __init__(self, vocab=200, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.head(self.rnn(self.emb(ids))[0])


def save_weights(model, path):
    dist.barrier()
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), path)
    dist.barrier()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--docs", type=int, default=700)
    p.add_argument("--seq-len", type=int, default=256)
    p.add_argument("--out", default="weights.pt")
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    model = DDP(TinyLM())
    opt = torch.optim.AdamW(model.parameters(), 1e-3)
    data = iter(CatDataset(SFTDataset(args.docs, rank, world), args.seq_len))
    step, exhausted = 0, False
    while not exhausted:
        try:
            ids = torch.tensor(next(data))[None]
        except StopIteration:
            exhausted = True
            continue
        logits = model(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[0, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.1)
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        step += 1
        if step % 10 == 0:
            print(f"rank {rank} step {step} loss {mean.item() / world:.3f}", flush=True)
    save_weights(model, args.out)
    print("saved", args.out)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
