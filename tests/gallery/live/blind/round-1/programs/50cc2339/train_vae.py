import argparse
import io
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class VAE(nn.Module):
    def __init__(self, d_in=784, d_h=128, d_z=16):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d_in, d_h), nn.SiLU(), nn.Linear(d_h, 2 * d_z))
        self.dec = nn.Sequential(nn.Linear(d_z, d_h), nn.SiLU(), nn.Linear(d_h, d_in))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, dim=-1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


def elbo(x, rec, mu, logvar, beta):
    rec_loss = F.binary_cross_entropy_with_logits(rec, x, reduction="none").sum(-1).mean()
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(-1).mean()
    return rec_loss + beta * kl


def make_images(n, seed):
    g = torch.Generator().manual_seed(seed)
    protos = (torch.rand(10, 784, generator=torch.Generator().manual_seed(0)) > 0.7).float()
    noise = (torch.rand(n, 784, generator=g) > 0.97).float()
    return (protos[torch.randint(0, 10, (n,), generator=g)] + noise).clamp(max=1)


class Exporter:
    """The last rank turns the best model of a round into a TorchScript file."""

    def __init__(self, store, out):
        self.store = store
        self.out = out
        os.makedirs(out, exist_ok=True)

    def publish(self, rnd, module):
        buf = io.BytesIO()
        torch.save(module.state_dict(), buf)
        self.store.set(f"best/{rnd}", buf.getvalue())

    def export(self, rnd):
        state = torch.load(io.BytesIO(self.store.get(f"best/{rnd}")))
        net = VAE()
        net.load_state_dict(state)
        torch.jit.script(net.dec).save(os.path.join(self.out, f"decoder_{rnd}.ts"))


def validate(module, images, beta):
    with torch.no_grad():
        return elbo(images, *module(images), beta).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=200)
    p.add_argument("--steps-per-round", type=int, default=10)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--lr", type=float, default=4e-3)
    p.add_argument("--beta", type=float, default=1.0)
    p.add_argument("--min-delta", type=float, default=1.0)
    p.add_argument("--out", default="export")
    args = p.parse_args()

    dist.init_process_group("gloo", timeout=timedelta(hours=2))
    rank, world = dist.get_rank(), dist.get_world_size()
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]) + 1,
                          is_master=(rank == 0), timeout=timedelta(hours=2), wait_for_workers=False)
    torch.manual_seed(1)
    model = DDP(VAE())
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    train, val = make_images(4096, 100 + rank), make_images(512, 7)
    exporter = Exporter(store, args.out)
    best = float("inf")

    for rnd in range(args.rounds):
        for _ in range(args.steps_per_round):
            x = train[torch.randint(0, len(train), (args.batch_size,))]
            loss = elbo(x, *model(x), args.beta)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        if rank == 0:
            score = validate(model.module, val, args.beta)
            print(f"round {rnd} train {loss.item():.2f} val {score:.2f} best {best:.2f}", flush=True)
            if best - score > args.min_delta:
                best = score
                exporter.publish(rnd, model.module)
        if rank == world - 1:
            exporter.export(rnd)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
