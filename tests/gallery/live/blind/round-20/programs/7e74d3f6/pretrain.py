import argparse
import itertools
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from blend import Blend, source

CURRICULUM = [
    ("warmup", 30, {"web": 1.0}),
    ("mix", 30, {"web": 0.7, "code": 0.3}),
    ("anneal", 20000, {"web": 0.5, "code": 0.3, "math": 0.2}),
]


class TinyLM(nn.Module):
    def __init__(self, vocab=512, dim=128, layers=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(dim, vocab)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1))
        return self.head(self.body(self.emb(x), mask=mask, is_causal=True))


def stage_loader(root, weights, rank, world, seed):
    blend = Blend([source(root, n, rank, world) for n in weights], list(weights.values()), seed)
    return DataLoader(blend, batch_size=8, num_workers=1, prefetch_factor=4)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(TinyLM())
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    step, t = 0, time.perf_counter()
    for n, (name, steps, weights) in enumerate(CURRICULUM):
        loader = stage_loader(args.data, weights, rank, world, seed=100 * n + rank)
        if rank == 0:
            print(f"stage {name}: {weights}", flush=True)
        for tokens in itertools.islice(loader, steps):
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            step += 1
            if step % 20 == 0 and rank == 0:
                now = time.perf_counter()
                print(f"step {step} loss {loss.item():.3f} {20 / (now - t):.1f} it/s", flush=True)
                t = now
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
