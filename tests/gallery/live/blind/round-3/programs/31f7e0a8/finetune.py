import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from featurize import Featurizer


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--steps", type=int, default=100000)
    a = p.parse_args()
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    feats = Featurizer(os.path.join(a.data, f"part-{rank:02d}.bin"))
    dist.init_process_group("gloo")
    model = DDP(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    g = torch.Generator().manual_seed(rank)
    for step in range(1, a.steps + 1):
        rows = torch.randint(0, len(feats), (32,), generator=g).tolist()
        x = torch.from_numpy(feats.batch(rows))
        loss = nn.functional.cross_entropy(model(x), x.argmax(1) % 5)
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.1)
        if step % 20 == 0:
            print(f"[rank{rank}] step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
