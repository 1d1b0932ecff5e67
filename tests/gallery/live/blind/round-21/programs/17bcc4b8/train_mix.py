import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

from corpus import DOMAINS, shard
from sharded_ckpt import DomainReport, ShardedCheckpoint

SAVE_EVERY = 20


def features(batch):
    g = torch.Generator()
    rows = []
    for doc_id, domain in batch:
        g.manual_seed(doc_id)
        rows.append(torch.randn(16, generator=g) + DOMAINS.index(domain))
    return torch.stack(rows), torch.tensor([DOMAINS.index(d) for _, d in batch])


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), world, rank == 0,
                          timeout=timedelta(hours=2))
    dist.init_process_group("gloo", store=dist.PrefixStore("pg", store), rank=rank, world_size=world)
    torch.manual_seed(1)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    ckpt = ShardedCheckpoint(store, rank, world, os.environ["RUN_DIR"])
    report = DomainReport(DOMAINS)
    step = 0
    for epoch in range(50):
        for batch in shard(rank, world):
            x, y = features(batch)
            time.sleep(0.15)
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            for (_, domain), hit in zip(batch, (logits.argmax(-1) == y).tolist()):
                report.update(domain, hit)
            step += 1
            if rank == 0 and step % 5 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
            if step % SAVE_EVERY == 0:
                ckpt.save(step, model.module, opt, report)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
