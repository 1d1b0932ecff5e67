import argparse
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from checkpoint import AsyncCheckpointer

VOCAB, DIM = 300, 96


class LM(nn.Module):
    def __init__(self, layers=3):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(DIM, 4, 2 * DIM, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, ids, targets):
        x = self.emb(ids)
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


def sample(gen, size, length=48):
    start = torch.randint(VOCAB, (size, 1), generator=gen)
    step = torch.randint(1, 5, (size, 1), generator=gen)
    ids = (start + step * torch.arange(length + 1)) % VOCAB
    return ids[:, :-1], ids[:, 1:]


@torch.no_grad()
def validate(model, batches=20):
    gen = torch.Generator().manual_seed(99)
    total = torch.zeros(())
    for _ in range(batches):
        x, y = sample(gen, 8)
        total += model(x, y)
    dist.all_reduce(total)
    return total.item() / batches / dist.get_world_size()


def run(rank, world, port, args):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(0)
    model = LM()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    saver = AsyncCheckpointer(args.ckpt_dir)
    gen = torch.Generator().manual_seed(rank)

    t0 = time.time()
    for step in range(1, args.steps + 1):
        x, y = sample(gen, args.batch)
        loss = model(x, y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % args.save_every == 0:
            saver.save(step, model, opt)
        if step % args.eval_every == 0:
            value = validate(model)
            if rank == 0:
                print(f"step {step} valid {value:.4f}", flush=True)
        if step % 20 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)
    saver.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--ckpt-dir", required=True)
    p.add_argument("--steps", type=int, default=1000000)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--save-every", type=int, default=80)
    p.add_argument("--eval-every", type=int, default=100)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(run, args=(args.ranks, port, args), nprocs=args.ranks)
