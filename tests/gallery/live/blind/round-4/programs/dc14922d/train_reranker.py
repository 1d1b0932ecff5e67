import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from embed import Embedder
from pairs import build_pairs


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    embedder = Embedder()
    probe = embedder.encode(list(range(64)))
    print(f"embedder ready, dim={probe.shape[-1]} norm={probe.norm(dim=-1).mean():.3f}")

    ds = build_pairs(6000, seed=rank)
    if rank == 0:
        print("precomputing embeddings")
    ds = ds.map(embedder, batched=True, batch_size=200, num_proc=2, desc="embed", new_fingerprint=f"emb-{rank}")
    ds.set_format("torch", columns=["emb", "label"])
    dist.barrier()

    model = DDP(nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 2)))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(1000):
        tot = 0.0
        for i in range(0, 6000, 50):
            b = ds[i:i + 50]
            loss = nn.functional.cross_entropy(model(b["emb"].float()), b["label"])
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item()
        if rank == 0:
            print(f"epoch {epoch} loss {tot / 120:.4f}")


if __name__ == "__main__":
    main()
