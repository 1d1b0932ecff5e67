import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from foundry.tasks import build_from_hf


def encode(rows, length):
    out = torch.zeros(len(rows), length, dtype=torch.long)
    for i, r in enumerate(rows):
        ids = [ord(c) % 128 for c in r["prompt"] + r["response"]][:length]
        out[i, : len(ids)] = torch.tensor(ids)
    return out


def main():
    cfg = json.load(open(sys.argv[1]))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = DDP(nn.Sequential(nn.Embedding(128, 32), nn.Linear(32, 128)))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for stage, name in enumerate(cfg["train_sets"]):
        print(f"Building train loader for {name}...", flush=True)
        data = encode(build_from_hf(name, "hf_prep"), cfg["max_seq_len"])
        print(f"{name}: {len(data)} samples", flush=True)
        for b in range(cfg["stage_batches"]):
            idx = torch.randint(0, len(data), (cfg["device_batch"],))
            x = data[idx]
            loss = nn.functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.1)
            if b % 10 == 9:
                print(f"[stage={stage}][batch={b + 1}/{cfg['stage_batches']}] loss/train/total: {loss.item():.4f}",
                      flush=True)


if __name__ == "__main__":
    main()
