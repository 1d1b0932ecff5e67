import argparse
import datetime
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset

from corpus import doc_lengths, shard, warm_up
from feature_store import DIM, FeatureStore


class DocFeatures(Dataset):
    def __init__(self, doc_ids, lengths, store):
        self.doc_ids, self.lengths, self.store = doc_ids, lengths, store

    def __len__(self):
        return len(self.doc_ids)

    def __getitem__(self, i):
        doc = self.doc_ids[i]
        vec = self.store.lookup(doc, int(self.lengths[doc]))
        return torch.from_numpy(vec.copy()), float(self.lengths[doc] % 7) / 7


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--db", required=True)
    ap.add_argument("--epochs", type=int, default=50)
    ap.add_argument("--batch-size", type=int, default=4)
    args = ap.parse_args()

    dist.init_process_group("gloo", timeout=datetime.timedelta(minutes=40))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    lengths = doc_lengths()

    if rank == 0:
        n = warm_up(FeatureStore(args.db), lengths)
        print(f"feature store ready: {n} of {len(lengths)} documents", flush=True)
    dist.barrier()

    store = FeatureStore(args.db)
    loader = DataLoader(DocFeatures(shard(rank, world), lengths, store), batch_size=args.batch_size)
    model = DDP(nn.Sequential(nn.Linear(DIM, 128), nn.GELU(), nn.Linear(128, 1)))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)

    step = 0
    for epoch in range(args.epochs):
        for vec, rel in loader:
            loss = F.mse_loss(model(vec).squeeze(-1), rel.float())
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.12)
            step += 1
            if step % 10 == 0:
                print(f"rank {rank} epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        store.flush()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
