import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

from activation_stats import ActivationStats
from layers import GPT


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--train-iters", type=int, default=100)
    p.add_argument("--micro-batch-size", type=int, default=1)
    p.add_argument("--seq-length", type=int, default=160)
    p.add_argument("--log-interval", type=int, default=5)
    a = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1234)
    gpt = GPT()
    model = torch.nn.parallel.DistributedDataParallel(gpt)
    opt = torch.optim.AdamW(model.parameters(), 3e-4)
    stats = ActivationStats(gpt)
    g = torch.Generator().manual_seed(rank)
    t = time.time()
    for it in range(1, a.train_iters + 1):
        x = torch.randint(0, 512, (a.micro_batch_size, a.seq_length + 1), generator=g)
        with stats:
            logits = model(x[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and it % a.log_interval == 0:
            now = time.time()
            print(f" iteration {it}/{a.train_iters} | elapsed time per iteration (ms): {1000 * (now - t) / a.log_interval:.1f}"
                  f" | lm loss: {loss.item():.4f} | act spread {stats.spread:.2f}", flush=True)
            t = now


if __name__ == "__main__":
    main()
