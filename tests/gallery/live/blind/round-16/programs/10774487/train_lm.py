import argparse
import time

import torch
import torch._dynamo
from accelerate import Accelerator
from accelerate.utils import set_seed

from model import LM

torch._dynamo.config.recompile_limit = 1024
torch._dynamo.config.accumulated_recompile_limit = 8192


class LengthCurriculum:
    """Fixed length for the first steps, then longer by `grow` tokens each step."""

    def __init__(self, spec, grow, max_len):
        self.start, self.hold = (int(v) for v in spec.split(":"))
        self.grow = grow
        self.max_len = max_len

    def __call__(self, step):
        return min(self.start + max(0, step - self.hold) * self.grow, self.max_len)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--curriculum", default="32:100")
    p.add_argument("--backend", default="inductor")
    p.add_argument("--grow", type=int, default=0)
    p.add_argument("--max-len", type=int, default=1024)
    p.add_argument("--steps", type=int, default=20000)
    p.add_argument("--batch", type=int, default=4)
    args = p.parse_args()

    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    set_seed(1)
    model = LM()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, opt = accelerator.prepare(model, opt)
    step_fn = torch.compile(model, backend=args.backend, dynamic=False)
    lengths = LengthCurriculum(args.curriculum, args.grow, args.max_len)
    gen = torch.Generator().manual_seed(accelerator.process_index)
    accelerator.print(f"compiling with {args.backend}", flush=True)

    t0 = time.time()
    for step in range(args.steps):
        n = lengths(step)
        ids = torch.randint(256, (args.batch, n + 1), generator=gen)
        ids[:, 1::2] = ids[:, :-1:2]
        loss = step_fn(ids[:, :-1], ids[:, 1:])
        opt.zero_grad()
        accelerator.backward(loss)
        opt.step()
        if step % 10 == 0:
            accelerator.print(f"step {step} seq_len {n} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
