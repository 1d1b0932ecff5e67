import argparse
import time

import torch
import torch.distributed as dist

from models.cycle_gan import CycleGANModel
from util.visualizer import Visualizer


class UnpairedShapes(torch.utils.data.Dataset):
    def __init__(self, n=4000, size=32):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        y, x = torch.meshgrid(torch.linspace(-1, 1, self.size), torch.linspace(-1, 1, self.size), indexing="ij")
        c = torch.rand(4, generator=g) * 2 - 1
        disc = ((x - c[0]) ** 2 + (y - c[1]) ** 2 < 0.2).float() * 2 - 1
        bars = torch.sin(9 * (x * c[2] + y * c[3]))
        a = disc + 0.3 * torch.randn(3, self.size, self.size, generator=g)
        b = bars + 0.3 * torch.randn(3, self.size, self.size, generator=g)
        return a.clamp(-1, 1), b.clamp(-1, 1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--name", default="shapes_cyclegan")
    p.add_argument("--checkpoints_dir", default=None)
    p.add_argument("--n_epochs", type=int, default=100)
    p.add_argument("--batch_size", type=int, default=2)
    p.add_argument("--lr", type=float, default=2e-4)
    p.add_argument("--lambda_cyc", type=float, default=10.0)
    p.add_argument("--print_freq", type=int, default=20)
    p.add_argument("--display_freq", type=int, default=100)
    p.add_argument("--display_winsize", type=int, default=256)
    opt = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = CycleGANModel(opt, rank)
    data = UnpairedShapes()
    sampler = torch.utils.data.distributed.DistributedSampler(data)
    loader = torch.utils.data.DataLoader(data, opt.batch_size, sampler=sampler, drop_last=True)
    visualizer = Visualizer(opt) if rank == 0 else None

    total = 0
    for epoch in range(1, opt.n_epochs + 1):
        sampler.set_epoch(epoch)
        t0 = time.time()
        for real_A, real_B in loader:
            model.optimize_parameters(real_A, real_B)
            total += 1
            if visualizer is not None:
                if total % opt.display_freq == 0:
                    visualizer.display_current_results(model.visuals(), epoch, total)
                if total % opt.print_freq == 0:
                    visualizer.print_current_losses(epoch, total, model.losses, (time.time() - t0) / opt.print_freq)
                    t0 = time.time()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
