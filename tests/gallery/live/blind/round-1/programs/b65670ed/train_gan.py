import argparse
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class Generator(nn.Sequential):
    def __init__(self, z=32, h=128, out=64):
        super().__init__(nn.Linear(z, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, out))


class Critic(nn.Sequential):
    def __init__(self, h=128, inp=64):
        super().__init__(nn.Linear(inp, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, 1))


class Trainer:
    def __init__(self, args):
        self.args = args
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(0)
        self.gen, self.critic = Generator(), Critic()
        self.opt_g = torch.optim.Adam(self.gen.parameters(), lr=2e-4, betas=(0.5, 0.9))
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=2e-4, betas=(0.5, 0.9))
        self.step = 0
        torch.manual_seed(100 + self.rank)

    def sync(self, module):
        flat = torch.cat([p.grad.flatten() for p in module.parameters()])
        dist.all_reduce(flat)
        flat /= self.world
        at = 0
        for p in module.parameters():
            p.grad.copy_(flat[at : at + p.numel()].view_as(p))
            at += p.numel()

    def save(self, tag):
        dist.barrier()
        if self.rank == 0:
            os.makedirs(self.args.out, exist_ok=True)
            torch.save({"gen": self.gen.state_dict(), "critic": self.critic.state_dict(), "step": self.step},
                       os.path.join(self.args.out, f"{tag}.pt"))
        dist.barrier()

    def real_batch(self):
        centers = torch.linspace(-2, 2, 8)[torch.randint(0, 8, (self.args.bs, 1))]
        return centers + 0.05 * torch.randn(self.args.bs, 64)

    def train_step(self):
        real = self.real_batch()
        fake = self.gen(torch.randn(self.args.bs, 32))
        loss_c = F.softplus(-self.critic(real)).mean() + F.softplus(self.critic(fake.detach())).mean()
        self.opt_c.zero_grad()
        loss_c.backward()
        self.sync(self.critic)
        self.opt_c.step()
        loss_g = F.softplus(-self.critic(fake)).mean()
        self.opt_g.zero_grad()
        loss_g.backward()
        self.sync(self.gen)
        self.opt_g.step()
        self.step += 1
        return loss_c.item(), loss_g.item()


def install_walltime(trainer, seconds):
    """The queue kills us at the limit, so keep a checkpoint from shortly before."""

    def on_limit(signum, frame):
        print(f"[{trainer.rank}] time limit is near, step {trainer.step}", flush=True)
        trainer.save("walltime")
        print(f"[{trainer.rank}] saved", flush=True)
        sys.exit(0)

    signal.signal(signal.SIGALRM, on_limit)
    if trainer.rank == 0:
        signal.setitimer(signal.ITIMER_REAL, seconds)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--bs", type=int, default=64)
    ap.add_argument("--steps", type=int, default=200000)
    ap.add_argument("--save-every", type=int, default=5000)
    ap.add_argument("--walltime", type=float, default=3600.0, help="seconds")
    ap.add_argument("--margin", type=float, default=120.0)
    ap.add_argument("--out", default="gan")
    args = ap.parse_args()

    dist.init_process_group("gloo")
    trainer = Trainer(args)
    install_walltime(trainer, args.walltime - args.margin)
    t0 = time.time()
    while trainer.step < args.steps:
        c, g = trainer.train_step()
        if trainer.step % 100 == 0 and trainer.rank == 0:
            print(f"step {trainer.step} critic {c:.3f} gen {g:.3f} {trainer.step / (time.time() - t0):.1f} it/s",
                  flush=True)
        if trainer.step % args.save_every == 0:
            trainer.save(f"step{trainer.step}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
