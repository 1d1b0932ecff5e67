import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

from lm.checkpoint import CheckpointManager, TrainState
from lm.model import Decoder


def batches(rank, size, ctx, vocab):
    g = torch.Generator().manual_seed(7 + rank)
    while True:
        start = torch.randint(0, vocab, (size, 1), generator=g)
        stride = torch.randint(1, 9, (size, 1), generator=g)
        seq = (start + stride * torch.arange(ctx + 1)) % vocab
        yield seq[:, :-1], seq[:, 1:]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--dump-folder", required=True)
    p.add_argument("--save-every", type=int, default=50)
    p.add_argument("--steps", type=int, default=100000)
    p.add_argument("--batch-size", type=int, default=4)
    args = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    dp_group = dist.new_group(backend="gloo", group_desc="dp")
    mesh = DeviceMesh.from_group(dp_group, "cpu", mesh_dim_names=("dp",))

    torch.manual_seed(0)
    model = Decoder()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)

    manager = CheckpointManager(TrainState(model, opt), args.dump_folder, args.save_every)
    data = batches(rank, args.batch_size, 64, 1024)
    t0 = time.time()
    for step in range(1, args.steps + 1):
        x, y = next(data)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).full_tensor()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if step % 3 == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean, group=dp_group)
            if rank == 0:
                print(f"step {step} loss {mean.item() / world:.3f} gnorm {norm.item():.2f} {(time.time() - t0) / 3 * 1e3:.0f} ms", flush=True)
            t0 = time.time()
        manager.save(step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
