import argparse
import gc
import logging
import tempfile
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from gan import Discriminator, Features, Generator
from metrics import FrechetDistance
from sideband import CheckpointWriter, Tracker

log = logging.getLogger("gan")


def real_batch(n, gen):
    y, x = torch.meshgrid(torch.linspace(-1, 1, 16), torch.linspace(-1, 1, 16), indexing="ij")
    c = torch.rand(n, 3, 1, 1, 3, generator=gen) * 2 - 1
    img = torch.sin(4 * (c[..., 0] * x + c[..., 1] * y + c[..., 2]))
    return img + 0.05 * torch.randn(n, 3, 16, 16, generator=gen)


def evaluate(G, feats, gen, rank, world, rounds):
    metric = FrechetDistance(48)
    with torch.no_grad():
        for i in range(rank, rounds, world):
            metric.update(feats(real_batch(64, gen)), real=True)
            metric.update(feats(G(torch.randn(64, 32, generator=gen))), real=False)
    return metric.compute().item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=10000)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--r1-every", type=int, default=16)
    p.add_argument("--eval-every", type=int, default=200)
    p.add_argument("--eval-rounds", type=int, default=90)
    p.add_argument("--save-every", type=int, default=250)
    p.add_argument("--gc-every", type=int, default=100)
    args = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [{rank}] %(name)s %(message)s")
    gc.disable()
    torch.manual_seed(0)
    G, D = Generator(), Discriminator()
    gd, dd = DDP(G), DDP(D)
    feats = Features()
    opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.0, 0.99))
    opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.0, 0.99))
    gen = torch.Generator().manual_seed(10 + rank)

    writer = tracker = None
    if rank == 0:
        writer = CheckpointWriter(tempfile.mkdtemp(prefix="gan-"))
        writer.start()
        tracker = Tracker()
        tracker.start()

    t0 = time.time()
    for step in range(1, args.steps + 1):
        real = real_batch(args.batch, gen)
        with torch.no_grad():
            fake = G(torch.randn(args.batch, 32, generator=gen))
        D.requires_grad_(True)
        regularize = step % args.r1_every == 0
        if regularize:
            real.requires_grad_(True)
        pred = dd(torch.cat([real, fake]))
        pr, pf = pred.chunk(2)
        loss_d = torch.nn.functional.softplus(-pr).mean() + torch.nn.functional.softplus(pf).mean()
        if regularize:
            (g,) = torch.autograd.grad(pr.sum(), real, create_graph=True)
            loss_d = loss_d + 0.5 * args.r1_every * g.square().sum((1, 2, 3)).mean()
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()

        D.requires_grad_(False)
        loss_g = torch.nn.functional.softplus(-D(gd(torch.randn(args.batch, 32, generator=gen)))).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()

        if step % args.gc_every == 0:
            gc.collect()
        if rank == 0 and step % 25 == 0:
            log.info("step %d D %.3f G %.3f (%.0f ms/step)", step, loss_d.item(), loss_g.item(),
                     1000 * (time.time() - t0) / 25)
            tracker.log(step=step, d=loss_d.item(), g=loss_g.item())
            t0 = time.time()
        if step % args.eval_every == 0:
            fid = evaluate(G, feats, gen, rank, world, args.eval_rounds)
            if rank == 0:
                log.info("step %d frechet %.4f", step, fid)
                t0 = time.time()
        if rank == 0 and step % args.save_every == 0:
            writer.submit(f"step{step % 1000}.pt", {**G.state_dict()})

    if rank == 0:
        writer.finish()
        tracker.done.set()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
