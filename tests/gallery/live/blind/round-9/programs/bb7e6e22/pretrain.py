import argparse
import math
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from schedule import FillDrain
from stage import Stage


def corpus(n, seq, vocab):
    g = torch.Generator().manual_seed(11)
    start = torch.randint(0, vocab, (n, 1), generator=g)
    step = torch.randint(1, 5, (n, 1), generator=g)
    tokens = (start + step * torch.arange(seq + 1)) % vocab
    return TensorDataset(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--micro-batch", type=int, default=8)
    p.add_argument("--num-micro", type=int, default=4)
    p.add_argument("--hidden", type=int, default=256)
    p.add_argument("--seq", type=int, default=16)
    p.add_argument("--samples", type=int, default=1552)
    p.add_argument("--epochs", type=int, default=50)
    args = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(100 + rank)
    vocab = 512
    stage = Stage(rank, world, vocab, args.hidden, depth=1)
    opt = torch.optim.AdamW(stage.parameters(), lr=3e-4)
    sched = FillDrain(
        stage, (args.micro_batch, args.seq, args.hidden), args.num_micro,
        loss_fn=lambda out, t: F.cross_entropy(out.flatten(0, 1), t.flatten()),
    )

    data = corpus(args.samples, args.seq, vocab)
    order = torch.Generator()
    loader = DataLoader(data, args.micro_batch * args.num_micro, shuffle=True, generator=order)
    edge = rank in (0, world - 1)

    step = 0
    for epoch in range(args.epochs):
        order.manual_seed(epoch)
        batches = iter(loader) if edge else None
        t0 = time.time()
        for _ in range(len(loader)):
            if edge:
                x, y = next(batches)
                xs, ys = x.split(args.micro_batch), y.split(args.micro_batch)
                loss = sched.step(xs if rank == 0 else None, ys if rank == world - 1 else None)
            else:
                loss = sched.step()
            torch.nn.utils.clip_grad_norm_(stage.parameters(), 1.0)
            opt.step()
            opt.zero_grad(set_to_none=True)
            step += 1
            if loss is not None and step % 10 == 0:
                dt = (time.time() - t0) / 10
                t0 = time.time()
                print(f"epoch {epoch} step {step} loss {loss.item():.3f} ppl {math.exp(min(loss.item(), 20)):.1f} {dt * 1e3:.0f} ms", flush=True)
        if rank == world - 1:
            print(f"epoch {epoch} done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
