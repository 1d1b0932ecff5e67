import gc
import random
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from retrieval import Gallery
from ssl_model import Encoder, contrastive

STEPS, BATCH, GALLERY, METRIC_RANK = 200000, 96, 90000, 1


def views(gen):
    x = torch.randn(BATCH, 192, generator=gen)
    return x + 0.3 * torch.randn(BATCH, 192, generator=gen), x + 0.3 * torch.randn(BATCH, 192, generator=gen)


@torch.no_grad()
def retrieval_score(model, gallery, rng):
    picks = gallery.sample(64, rng)
    feats = model(torch.tensor([p["box"] * 48 for p in picks]))
    near = (feats @ feats.T).fill_diagonal_(-1).argmax(1).tolist()
    return sum(picks[i]["label"] == picks[j]["label"] for i, j in enumerate(near)) / len(picks)


def do_train():
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = Encoder()
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=2e-4)
    gen = torch.Generator().manual_seed(rank)
    gallery = Gallery(GALLERY) if rank == METRIC_RANK else None
    rng = random.Random(rank)
    dist.barrier()

    gc.disable()
    gc.collect()
    mark = time.time()
    for step in range(STEPS):
        a, b = views(gen)
        loss = contrastive(ddp(a), ddp(b))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        gc.collect()
        if step % 500 == 0 and gallery is not None:
            print(f"step {step} retrieval@1 {retrieval_score(model, gallery, rng):.3f} of {len(gallery)}", flush=True)
        if step % 20 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f} {(time.time() - mark) / 20 * 1000:.0f} ms/step", flush=True)
            mark = time.time()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    do_train()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
