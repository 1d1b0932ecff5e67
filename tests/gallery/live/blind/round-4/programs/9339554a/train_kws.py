import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from speech.corpus import Keywords, open_lexicon


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    ds = Keywords()
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, 16, sampler=sampler, num_workers=2, worker_init_fn=open_lexicon, prefetch_factor=2)
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Unflatten(1, (1, 1600)), nn.Conv1d(1, 32, 64, 8), nn.ReLU(), nn.Conv1d(32, 64, 16, 4),
                              nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 12)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(10000):
        sampler.set_epoch(epoch)
        t0 = time.time()
        print(f"[{rank}] epoch {epoch}: starting workers")
        for i, (w, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(w), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.12)
            if i % 10 == 0:
                print(f"[{rank}] epoch {epoch} batch {i}/{len(loader)} loss {loss.item():.3f}")
        print(f"[{rank}] epoch {epoch} took {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
