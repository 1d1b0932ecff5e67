import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from lm import TinyLM, sample_batch
from metrics import MetricBuffer


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--log-dir", required=True)
    p.add_argument("--iters", type=int, default=100000)
    p.add_argument("--log-interval", type=int, default=2)
    p.add_argument("--first-flush", type=float, default=10.0)
    p.add_argument("--flush-secs", type=float, default=2.5)
    args = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(hours=2))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1234)
    model = DDP(TinyLM())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(1234 + rank)

    # scalars and histograms come from the last rank, as the loss does
    buffer = None
    if rank == world - 1:
        os.makedirs(args.log_dir, exist_ok=True)
        buffer = MetricBuffer(os.path.join(args.log_dir, "metrics.jsonl"), args.first_flush, args.flush_secs)

    for it in range(1, args.iters + 1):
        tokens = sample_batch(16, 48)
        loss = model(tokens[:, :-1], tokens[:, 1:])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if buffer is not None and it % args.log_interval == 0:
            buffer.append(it, {"loss": loss.item(), "grad_norm": norm.item()}, model.module)
        if rank == world - 1 and it % 10 == 0:
            print(f"iteration {it:6d} | lm loss {loss.item():.4f} | grad norm {norm.item():.3f}", flush=True)

    if buffer is not None:
        buffer.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
