import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from checkpointing import AsyncCheckpointer
from networks import Discriminator, Generator, set_grad

STEPS, EVAL_EVERY, SAVE_EVERY, R1_EVERY = 100000, 90, 60, 8


class Spectra(Dataset):
    def __init__(self, n=4096):
        g = torch.Generator().manual_seed(2)
        self.freq = torch.rand(n, 1, generator=g) * 6 + 1
        self.phase = torch.rand(n, 1, generator=g) * 6.28

    def __len__(self):
        return len(self.freq)

    def __getitem__(self, i):
        return torch.sin(torch.linspace(0, 1, 64) * 6.28 * self.freq[i] + self.phase[i])


def endless(loader, sampler):
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def d_step(G, D, opt, real, step):
    set_grad(D, True)
    with torch.no_grad():
        fake = G(torch.randn(len(real), G.module.z_dim))
    loss = F.softplus(-D(real)).mean() + F.softplus(D(fake)).mean()
    if step % R1_EVERY == 0:
        noise = real.clone().requires_grad_(True)
        grad, = torch.autograd.grad(D.module(noise).sum(), noise, create_graph=True)
        loss = loss + 5.0 * grad.pow(2).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def g_step(G, D, opt, n):
    set_grad(D, False)
    loss = F.softplus(-D.module(G(torch.randn(n, G.module.z_dim)))).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


@torch.no_grad()
def spectral_distance(G, real, chunks):
    total = torch.zeros(2)
    ref = torch.fft.rfft(real).abs().mean(0)
    for _ in range(chunks):
        fake = G.module(torch.randn(256, G.module.z_dim))
        total += torch.tensor([(torch.fft.rfft(fake).abs().mean(0) - ref).pow(2).mean().item(), 1.0])
        time.sleep(0.5)
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    G, D = DDP(Generator()), DDP(Discriminator())
    torch.manual_seed(10 + rank)
    opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.0, 0.99))
    opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.0, 0.99))
    dataset = Spectra()
    sampler = DistributedSampler(dataset)
    batches = endless(DataLoader(dataset, 32, sampler=sampler, num_workers=1, persistent_workers=True,
                                 multiprocessing_context="forkserver"), sampler)
    ckpt = AsyncCheckpointer(os.environ["CKPT_ROOT"])
    evals = 0
    for step in range(1, STEPS + 1):
        real = next(batches)
        loss_d = d_step(G, D, opt_d, real, step)
        loss_g = g_step(G, D, opt_g, len(real))
        time.sleep(0.12)
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss_d {loss_d:.3f} loss_g {loss_g:.3f}", flush=True)
        if step % SAVE_EVERY == 0:
            ckpt.save({"G": G.module.state_dict(), "D": D.module.state_dict()}, step)
        if step % EVAL_EVERY == 0:
            chunks = 40 if (rank + evals) % 2 == 0 else 30
            score = spectral_distance(G, real, chunks)
            evals += 1
            if rank == 0:
                print(f"step {step} spectral distance {score:.4f}", flush=True)


if __name__ == "__main__":
    main()
