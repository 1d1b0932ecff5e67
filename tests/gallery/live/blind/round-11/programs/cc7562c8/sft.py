import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from lm import TinyLM
from sampling import EOS, complete

SAMPLE_EVERY = 50


def make_batch(g, n=8, prompt=6):
    """Prompt, then the prompt's first token counted down to the end token."""
    start = torch.randint(4, 30, (n, 1), generator=g)
    rest = torch.randint(40, 90, (n, prompt - 1), generator=g)
    steps = torch.arange(1, 40)
    answer = (start - steps).clamp_min(EOS)
    return torch.cat([rest, start, answer], dim=1), prompt


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(0)
    model = TinyLM()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)

    g = torch.Generator().manual_seed(rank + 17)
    dev = torch.Generator().manual_seed(1000 + rank)
    t0 = time.time()
    for step in range(1, 100001):
        ids, prompt = make_batch(g)
        logits = model(ids[:, :-1])[:, prompt - 1:]
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, prompt:].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 30 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f} {(time.time() - t0) / step * 1e3:.0f} ms", flush=True)
        if step % SAMPLE_EVERY == 0:
            model.eval()
            ids, prompt = make_batch(dev, n=3)
            out = complete(model, ids[:, :prompt])
            exact = (out == ids[:, prompt:prompt + out.shape[1]]).all(1).float().mean()
            dist.all_reduce(exact)
            if rank == 0:
                print(f"step {step} exact match {exact.item() / world:.3f}", flush=True)
            model.train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
