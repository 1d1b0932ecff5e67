import argparse
import os
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from data import MixedInstructions, build_manifest, collate
from model import VisionLanguageModel


def parallelize(model, mesh):
    hsdp, full = mesh["replicate", "shard"], mesh["replicate", "shard"]._flatten("dp")
    for blk in model.vision.blocks:
        fully_shard(blk, mesh=hsdp)
    fully_shard(model.vision, mesh=hsdp)
    for layer in model.layers:
        fully_shard(layer, mesh=full)
    fully_shard(model, mesh=full)
    return model


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=1)
    ap.add_argument("--batch-size", type=int, default=2)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(hours=2))
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world // 2, 2), mesh_dim_names=("replicate", "shard"))

    manifest = os.path.join(tempfile.gettempdir(), f"mix-{os.environ.get('MASTER_PORT')}.json")
    if rank == 0:
        build_manifest(manifest)
    dist.barrier()
    ds = MixedInstructions(manifest)
    sampler = DistributedSampler(ds, shuffle=False)
    loader = DataLoader(ds, args.batch_size, sampler=sampler, collate_fn=collate, drop_last=True)

    torch.manual_seed(0)
    model = parallelize(VisionLanguageModel(), mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    step, t0 = 0, time.time()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            ids = batch["input_ids"]
            logits = model(ids, batch["pixel_values"])
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
            loss.backward()
            opt.step()
            opt.zero_grad(set_to_none=True)
            step += 1
            if rank == 0 and step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f} {(time.time() - t0) / step * 1e3:.0f} ms/step", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
