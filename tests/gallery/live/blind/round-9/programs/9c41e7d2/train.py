import argparse
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from data import MixedInstructions, collate
from model import VLM


def shard(model, mesh):
    for block in model.visual.blocks:
        fully_shard(block, mesh=mesh)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=2000)
    p.add_argument("--batch-size", type=int, default=2)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--log-every", type=int, default=5)
    args = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(0)
    model = shard(VLM(), mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)

    dataset = MixedInstructions()
    sampler = DistributedSampler(dataset, seed=5)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler, collate_fn=collate, drop_last=True)

    step, t0 = 0, time.time()
    for epoch in range(100):
        sampler.set_epoch(epoch)
        for batch in loader:
            loss = model(**batch)
            loss.backward()
            opt.step()
            opt.zero_grad(set_to_none=True)
            step += 1
            if step % args.log_every == 0:
                avg = loss.detach().clone()
                dist.all_reduce(avg)
                if rank == 0:
                    print(f"epoch {epoch} step {step} loss {avg.item() / world:.4f} {(time.time() - t0) / step * 1000:.0f} ms/step", flush=True)
            if step >= args.steps:
                dist.destroy_process_group()
                return


if __name__ == "__main__":
    main()
