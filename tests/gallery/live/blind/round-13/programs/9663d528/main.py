import argparse
import os
import socket
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

import corpus
from dataloader import ByteTokenizer, token_batches
from model import GPT


@torch.no_grad()
def evaluate(model, batches, steps, device="cpu"):
    model.eval()
    total = torch.zeros((), device=device)
    for _ in range(steps):
        x, y = next(batches)
        total += model(x, y)
    dist.all_reduce(total)
    model.train()
    return total.item() / steps / dist.get_world_size()


def worker(rank, args, root, port):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=args.world)
    torch.manual_seed(1)
    model = DDP(GPT(ByteTokenizer.vocab_size))
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    train = token_batches(root, "train", args.batch, 64, rank, args.world)
    t0 = time.time()
    for step in range(1, args.steps + 1):
        if step % args.eval_every == 0:
            val = token_batches(root, "val", args.batch, 64, rank, args.world)
            bpb = evaluate(model.module, val, args.eval_steps)
            if rank == 0:
                print(f"step {step} | val loss {bpb:.4f}", flush=True)
        x, y = next(train)
        loss = model(x, y)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if rank == 0 and step % 10 == 0:
            print(f"step {step} | loss {loss.item():.4f} | {time.time() - t0:.1f}s", flush=True)
    dist.destroy_process_group()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--world", type=int, default=4)
    ap.add_argument("--batch", type=int, default=4)
    ap.add_argument("--steps", type=int, default=20000)
    ap.add_argument("--eval-every", type=int, default=60)
    ap.add_argument("--eval-steps", type=int, default=8)
    args = ap.parse_args()
    root = tempfile.mkdtemp(prefix="base-data-")
    corpus.build(root)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(args, root, port), nprocs=args.world)


if __name__ == "__main__":
    main()
