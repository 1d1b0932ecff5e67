import argparse
import time
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, DistributedSampler

from encoder import SpeechEncoder
from features import FilterbankDataset


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--layers", type=int, default=6)
    p.add_argument("--warmup", type=int, default=60)
    p.add_argument("--layerdrop", type=float, default=0.15)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--seed", type=int, default=1234)
    p.add_argument("--max-updates", type=int, default=100000)
    return p.parse_args()


def build_model(args, mesh, rank):
    torch.manual_seed(args.seed)
    model = SpeechEncoder(feat_dim=20, dim=48, heads=4, ffn=96, num_layers=args.layers, vocab=32)
    model.rng = np.random.default_rng(args.seed + rank)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def train(args):
    dist.init_process_group("gloo", timeout=timedelta(minutes=45))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("shard",))
    model = build_model(args, mesh, rank)
    optim = torch.optim.AdamW(model.parameters(), lr=args.lr)

    data = FilterbankDataset(3 * 4 * 40)
    sampler = DistributedSampler(data, shuffle=True, seed=args.seed)
    loader = DataLoader(data, batch_size=4, sampler=sampler)

    update, epoch = 0, 0
    while update < args.max_updates:
        sampler.set_epoch(epoch)
        for feats, labels in loader:
            model.layerdrop = args.layerdrop if update >= args.warmup else 0.0
            logits = model(feats)
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
            loss.backward()
            grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optim.step()
            optim.zero_grad()
            time.sleep(0.12)
            update += 1
            if update % 10 == 0:
                norm = grad_norm.full_tensor().item()
                if rank == 0:
                    print(f"update {update} epoch {epoch} loss {loss.item():.3f} gnorm {norm:.2f}", flush=True)
        epoch += 1
    dist.destroy_process_group()


if __name__ == "__main__":
    train(parse_args())
