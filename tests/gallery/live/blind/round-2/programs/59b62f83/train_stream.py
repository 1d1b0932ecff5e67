import argparse
import glob
import os
import time

import torch
import torch.distributed as dist
from datasets import load_dataset
from datasets.distributed import split_dataset_by_node
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

torch.set_num_threads(1)


def encode(example, length=24):
    ids = [hash_word(w) for w in example["text"].split()][:length]
    return {"input_ids": ids + [0] * (length - len(ids))}


def hash_word(w):
    return sum(ord(c) * (i + 3) for i, c in enumerate(w)) % 251 + 1


def collate(rows):
    return torch.tensor([r["input_ids"] for r in rows])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(256, 32)
        self.rnn = nn.GRU(32, 64, batch_first=True)
        self.out = nn.Linear(64, 256)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="data")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=8)
    args = p.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    files = sorted(glob.glob(os.path.join(args.data, "*.jsonl")))
    ds = load_dataset("json", data_files=files, split="train", streaming=True)
    ds = split_dataset_by_node(ds, rank=rank, world_size=world)
    ds = ds.map(encode, remove_columns=["text"])
    if rank == 0:
        print(f"streaming {len(files)} files over {world} ranks", flush=True)

    model = DDP(Model())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        ds.set_epoch(epoch)
        loader = DataLoader(ds, batch_size=args.batch_size, collate_fn=collate, num_workers=1, drop_last=True)
        seen = 0
        for step, ids in enumerate(loader):
            logits = model(ids[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)
            opt.zero_grad()
            loss.backward()
            opt.step()
            seen += len(ids)
            time.sleep(0.08)
            if step % 10 == 0:
                print(f"rank {rank} epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        dist.barrier()
        if rank == 0:
            torch.save(model.module.state_dict(), f"epoch{epoch}.pt")
            print(f"epoch {epoch} finished, {seen} samples on this rank", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
