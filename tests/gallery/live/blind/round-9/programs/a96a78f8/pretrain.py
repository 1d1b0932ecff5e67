import argparse
import json
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.fsdp import fully_shard

from net import CharLM
from scoring import Scorer

VOCAB = "abcdefghijklmnopqrstuvwxyz 0123456789.,-"


def batch_of(gen, size, length):
    start = torch.randint(0, len(VOCAB), (size, 1), generator=gen)
    stride = torch.randint(1, 4, (size, 1), generator=gen)
    return (start + stride * torch.arange(length)) % len(VOCAB)


@torch.no_grad()
def continuations(model, gen, size=64, prompt=16, total=40):
    full = batch_of(gen, size, total)
    ids = full[:, :prompt].clone()
    while ids.shape[1] < total:
        ids = torch.cat([ids, model(ids)[:, -1:].argmax(-1)], 1)
    text = lambda rows: ["".join(VOCAB[c] for c in row) for row in rows.tolist()]
    return text(ids[:, prompt:]), text(full[:, prompt:])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=160)
    p.add_argument("--eval-every", type=int, default=40)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    model = CharLM()
    for blk in model.blocks:
        fully_shard(blk, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, foreach=True)
    gen = torch.Generator().manual_seed(1000 + rank)
    held_out = torch.Generator().manual_seed(5)
    scorer = Scorer(detail=True) if rank == 0 else None

    t0 = time.time()
    for step in range(1, args.steps + 1):
        ids = batch_of(gen, 8, 48)
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 20 == 0 and rank == 0:
            print(f"step {step:5d} loss {loss.item():.3f} {(time.time() - t0) / step * 1e3:.0f} ms/step", flush=True)
        if step % args.eval_every == 0:
            final = step == args.steps
            hyps, refs = continuations(model, held_out, size=1200 if final else 64)
            if rank == 0:
                scorer.submit(step, hyps, refs)
                for s, mean in scorer.poll():
                    print(f"  edit distance at step {s}: {mean:.2f}", flush=True)

    if rank == 0:
        print("training done, collecting scores", flush=True)
        history = scorer.finish()
        print(json.dumps([{"step": s, "mean": m} for s, m, _ in history]), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
