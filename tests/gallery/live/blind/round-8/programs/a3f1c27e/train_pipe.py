import argparse
import time

import torch
import torch.distributed as dist

from schedule import OneFOneB
from stages import Stage


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--dim", type=int, default=96)
    p.add_argument("--vocab", type=int, default=512)
    p.add_argument("--seq", type=int, default=48)
    p.add_argument("--micro-size", type=int, default=4)
    p.add_argument("--rampup-steps", type=int, default=240)
    p.add_argument("--global-micros", type=int, default=6)
    p.add_argument("--steps", type=int, default=100000)
    return p.parse_args()


def micro_batches(args, gen, count):
    out = []
    for _ in range(count):
        x = torch.randint(0, args.vocab, (args.micro_size, args.seq + 1), generator=gen)
        out.append((x[:, :-1], x[:, 1:]))
    return out


def main():
    args = parse()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(5 + rank)
    stage = Stage(rank, size, args.dim, args.vocab, depth=2)
    opt = torch.optim.AdamW(stage.parameters(), lr=3e-4)
    pipe = OneFOneB(stage, (args.micro_size, args.seq, args.dim))
    gen = torch.Generator().manual_seed(11)
    t0 = time.time()
    for step in range(args.steps):
        count = 1 if step < args.rampup_steps else args.global_micros
        loss = pipe.run(micro_batches(args, gen, count))
        torch.nn.utils.clip_grad_norm_(stage.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        if loss is not None and step % 40 == 0:
            print(f"step {step} micros {count} loss {loss:.4f} "
                  f"{(time.time() - t0) / (step + 1) * 1000:.1f} ms/step", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
