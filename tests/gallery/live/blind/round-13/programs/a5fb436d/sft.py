import argparse
import logging
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from lm import CausalLM
from packing import PackedStream, build_documents

logger = logging.getLogger("sft")


def setup_model(mesh):
    torch.manual_seed(7)
    model = CausalLM(vocab=384, dim=64, depth=3, heads=4, ctx=96)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def loss_fn(model, tokens, targets):
    logits = model(tokens)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)


@torch.no_grad()
def run_eval(model, val_docs, args, rank, world):
    model.eval()
    loader = iter(PackedStream(val_docs[rank::world], args.seq_len, args.batch, repeat=False))
    total = torch.zeros(2)
    for tokens, targets in loader:
        total[0] += loss_fn(model, tokens, targets)
        total[1] += 1
    dist.all_reduce(total)
    model.train()
    return (total[0] / total[1]).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100000)
    ap.add_argument("--grad-accum", type=int, default=1)
    ap.add_argument("--batch", type=int, default=2)
    ap.add_argument("--seq-len", type=int, default=96)
    ap.add_argument("--eval-interval", type=int, default=60)
    args = ap.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s {rank}/{world} %(message)s")
    mesh = init_device_mesh("cpu", (world,))
    model = setup_model(mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)

    train_docs = build_documents(6000, seed=0)
    val_docs = build_documents(70, seed=1)
    stream = iter(PackedStream(train_docs[rank::world], args.seq_len, args.batch, repeat=True))

    t0 = time.time()
    for step in range(1, args.steps + 1):
        opt.zero_grad()
        for micro in range(args.grad_accum):
            model.set_requires_gradient_sync(micro == args.grad_accum - 1)
            tokens, targets = next(stream)
            loss = loss_fn(model, tokens, targets) / args.grad_accum
            loss.backward()
        opt.step()
        if rank == 0 and step % 20 == 0:
            logger.info("step %d | loss %.4f | %.3f s/step", step, loss.item() * args.grad_accum, (time.time() - t0) / 20)
            t0 = time.time()
        if step % args.eval_interval == 0:
            val = run_eval(model, val_docs, args, rank, world)
            if rank == 0:
                logger.info("step %d | val loss %.4f", step, val)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
