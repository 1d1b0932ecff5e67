import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from ckpt import AsyncSaver
from monitor import UsageMonitor

VOCAB, DIM, SEQ, BATCH = 512, 128, 48, 8


class Decoder(nn.Module):
    def __init__(self, layers=3):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(DIM, 4, 4 * DIM, 0.0, batch_first=True, norm_first=True)
            for _ in range(layers))
        self.head = nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, ids, mask):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.head(x)


def batch(gen):
    start = torch.randint(0, VOCAB, (BATCH, 1), generator=gen)
    stride = torch.randint(1, 6, (BATCH, 1), generator=gen)
    return (start + stride * torch.arange(SEQ + 1)) % VOCAB


@torch.no_grad()
def evaluate(model, mask, rank, iters=12):
    model.eval()
    gen = torch.Generator().manual_seed(7000 + rank)
    total = torch.zeros(2)
    for _ in range(iters):
        ids = batch(gen)
        total[0] += F.cross_entropy(model(ids[:, :-1], mask).flatten(0, 1), ids[:, 1:].flatten())
        total[1] += 1
    dist.all_reduce(total)
    model.train()
    return (total[0] / total[1]).item()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    root = [tempfile.mkdtemp(prefix="dcp-") if rank == 0 else None]
    dist.broadcast_object_list(root, src=0)
    torch.manual_seed(0)
    model = Decoder()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    saver, monitor = AsyncSaver(root[0]), UsageMonitor()
    mask = nn.Transformer.generate_square_subsequent_mask(SEQ)
    gen = torch.Generator().manual_seed(rank)
    t0 = time.time()
    for step in range(1, 50001):
        ids = batch(gen)
        loss = F.cross_entropy(model(ids[:, :-1], mask).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        if step % 20 == 0:
            norm = norm.full_tensor().item()
            if rank == 0:
                print(f"step {step} loss {loss.item():.3f} norm {norm:.2f} {(time.time() - t0) / 20:.3f}s", flush=True)
            t0 = time.time()
        if step % 80 == 0:
            val = evaluate(model, mask, rank)
            if rank == 0:
                print(f"step {step} val {val:.3f}", flush=True)
        if step % 100 == 0:
            saver.save(step, model, opt)
    saver.close()
    monitor.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
