import argparse
import os
import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.fsdp import fully_shard

from checkpointing import Checkpointer


class Net(nn.Module):
    def __init__(self, vocab=400, dim=96, layers=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 4, 3 * dim, 0.0, batch_first=True, norm_first=True)
            for _ in range(layers))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids, mask):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.head(x)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--ckpt-every", type=int, default=120)
    ap.add_argument("--max-steps", type=int, default=20000)
    ap.add_argument("--output", default=None)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    out = [args.output or (tempfile.mkdtemp(prefix="ft-") if rank == 0 else None)]
    dist.broadcast_object_list(out, src=0)

    torch.manual_seed(0)
    model = Net()
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    ckpt = Checkpointer(out[0], model, opt)
    mask = nn.Transformer.generate_square_subsequent_mask(40)
    gen = torch.Generator().manual_seed(rank)
    t0 = time.time()
    for step in range(1, args.max_steps + 1):
        start = torch.randint(0, 400, (8, 1), generator=gen)
        ids = (start + 3 * torch.arange(41)) % 400
        loss = F.cross_entropy(model(ids[:, :-1], mask).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        if rank == 0 and step % 20 == 0:
            print(f"step {step:5d} loss {loss.item():.4f} {(time.time() - t0) / 20:.3f}s/step", flush=True)
            t0 = time.time()
        if step % args.ckpt_every == 0:
            ckpt.save(step, {"loss": loss.item()})
            if rank == 0:
                print(f"checkpoint {step} submitted", flush=True)
    ckpt.wait()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
