import argparse
import logging

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

log = logging.getLogger("forecast")


class TCN(nn.Module):
    def __init__(self, c=32, layers=4, horizon=12):
        super().__init__()
        mods = [nn.Conv1d(2, c, 3, padding=1)]
        for i in range(layers):
            mods += [nn.ReLU(), nn.Conv1d(c, c, 3, padding=2**i, dilation=2**i)]
        self.body = nn.Sequential(*mods)
        self.head = nn.Linear(c, horizon)

    def forward(self, x):
        return self.head(self.body(x)[..., -1])


def series(gen, bs, length=96, horizon=12):
    phase = torch.rand(bs, 1, generator=gen)
    t = torch.arange(length + horizon)[None] / 24
    y = torch.sin(2 * torch.pi * (t + phase)) + 0.1 * torch.randn(bs, length + horizon, generator=gen)
    x = torch.stack([y[:, :length], phase.expand(-1, length)], dim=1)
    return x, y[:, length:], phase[:, 0]


def write_report(net, epoch, gen):
    import report

    x, y, phase = series(gen, 512)
    with torch.no_grad():
        err = (net(x) - y).abs().mean(-1)
    rows = []
    for name, s in report.SLICES.items():
        m = s.mask(phase)
        rows.append((name, err[m].mean().item(), int(m.sum())))
    with open(f"report_{epoch:03d}.md", "w") as f:
        f.write(report.render(rows) + "\n")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=100)
    ap.add_argument("--steps", type=int, default=60)
    ap.add_argument("--bs", type=int, default=16)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [{rank}] %(message)s")
    torch.manual_seed(0)
    model = DDP(TCN())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    gen = torch.Generator().manual_seed(rank)
    for epoch in range(1, args.epochs + 1):
        total = 0.0
        for _ in range(args.steps):
            x, y, _ = series(gen, args.bs)
            loss = nn.functional.l1_loss(model(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.item()
        if rank == 0:
            log.info("epoch %d mae %.4f", epoch, total / args.steps)
            if epoch % 2 == 0:
                write_report(model.module, epoch, torch.Generator().manual_seed(9))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
