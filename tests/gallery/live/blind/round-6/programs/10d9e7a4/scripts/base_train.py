import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

from nano.dataloader import tokenizing_loader
from nano.gpt import MiniGPT
from nano.shards import ensure_shards


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="shards")
    p.add_argument("--num-iterations", type=int, default=100)
    p.add_argument("--device-batch-size", type=int, default=4)
    p.add_argument("--max-seq-len", type=int, default=256)
    p.add_argument("--eval-every", type=int, default=60)
    a = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        ensure_shards(a.data)
    dist.barrier()
    torch.manual_seed(42)
    model = MiniGPT(T=a.max_seq_len)
    opt = torch.optim.AdamW(model.parameters(), 1e-3)
    mk = lambda split: tokenizing_loader(a.device_batch_size, a.max_seq_len, a.data, split, rank, world)
    train_loader = mk("train")
    x, y, state = next(train_loader)
    t0 = time.time()
    for step in range(a.num_iterations):
        if step and step % a.eval_every == 0:
            vl, tot = mk("val"), torch.zeros(1)
            with torch.no_grad():
                for _ in range(4):
                    vx, vy, _ = next(vl)
                    tot += F.cross_entropy(model(vx).flatten(0, 1), vy.flatten())
            dist.all_reduce(tot)
            if rank == 0:
                print(f"step {step} | val {tot.item() / 4 / world:.4f}", flush=True)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        x, y, state = next(train_loader)
        for q in model.parameters():
            dist.all_reduce(q.grad)
            q.grad /= world
        opt.step()
        opt.zero_grad(set_to_none=True)
        if rank == 0 and step % 10 == 0:
            print(f"step {step:05d}/{a.num_iterations} | loss {loss.item():.4f} | {time.time() - t0:.1f}s | {state}", flush=True)


if __name__ == "__main__":
    main()
