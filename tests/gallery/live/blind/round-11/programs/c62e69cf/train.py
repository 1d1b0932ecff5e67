import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from feed import ShardFeed
from saver import AsyncSaver


class CharModel(nn.Module):
    def __init__(self, dim=64, layers=2):
        super().__init__()
        self.embed = nn.Embedding(256, dim)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.0, batch_first=True)
                                    for _ in range(layers))
        self.head = nn.Linear(dim, 256)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.head(x)


def synced(batches):
    """Ends on all ranks as soon as one has no more batches."""
    it = iter(batches)
    while True:
        batch = next(it, None)
        flag = torch.tensor(0 if batch is None else 1)
        dist.all_reduce(flag, op=dist.ReduceOp.MIN)
        if not flag:
            for _ in it:
                pass
            return
        yield batch


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ckpt", required=True)
    a = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(0)
    model = CharModel()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    saver = AsyncSaver(a.ckpt)
    feed = ShardFeed(rank, world)
    step, t0 = 0, time.time()
    for epoch in range(100000):
        for ids in synced(feed.epoch(shards=2)):
            loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            loss.backward()
            opt.step()
            opt.zero_grad()
            step += 1
            if step % 120 == 0:
                saver.save(step, model, opt)
        total = loss.detach().clone()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch} step {step} loss {total.item() / world:.4f} {(time.time() - t0) / step * 1e3:.0f} ms", flush=True)
    saver.finish()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
