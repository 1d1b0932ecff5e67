import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

from moe import TinyLM
from optim import clip_grad_norm, reduce_dense, split_params

VOCAB = 600
RANGES = {"general": (0, VOCAB), "arithmetic": (0, 380)}


def stages(spec):
    step = 0
    for part in spec.split(","):
        name, n = part.split(":")
        for _ in range(int(n)):
            yield step, name
            step += 1


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--stages", default="general:1000")
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--seq", type=int, default=32)
    args = ap.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    ep_group = dist.new_group(list(range(world)))
    mp_group = dist.new_group(list(range(world)))

    torch.manual_seed(0)
    model = TinyLM(VOCAB, 48, 96, 2, ep_group)
    dense, experts = split_params(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    gen = torch.Generator().manual_seed(100 + rank)
    if rank == 0:
        print(f"training starts: {len(dense)} dense and {len(experts)} expert tensors, ep={world}", flush=True)

    t0 = time.time()
    for step, corpus in stages(args.stages):
        lo, hi = RANGES[corpus]
        tokens = torch.randint(lo, hi, (args.batch, args.seq + 1), generator=gen)
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), tokens[:, 1:].reshape(-1))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        reduce_dense(dense)
        norm = clip_grad_norm(dense, experts, 1.0, mp_group)
        opt.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} [{corpus}] loss {loss.item():.4f} gnorm {norm.item():.3f} {time.time() - t0:.1f}s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
