import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from gan.nets import D, G
from gan.rings import rings


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--samples")
    args = ap.parse_args()
    rank = int(os.environ["RANK"])
    print(f"| distributed init (rank {rank}): env://", flush=True)
    dist.init_process_group("gloo", init_method="env://")
    print(f"| rank {rank} joined", flush=True)
    g, d = DDP(G()), DDP(D())
    og = torch.optim.Adam(g.parameters(), 2e-4, (0.5, 0.99))
    od = torch.optim.Adam(d.parameters(), 2e-4, (0.5, 0.99))
    bce = torch.nn.functional.binary_cross_entropy_with_logits
    for it in range(500000):
        real, z = rings(128, it, rank), torch.randn(128, 16)
        with torch.no_grad():
            fake = g(z)
        r, f = d(torch.cat([real, fake])).chunk(2)
        ld = bce(r, torch.ones_like(r)) + bce(f, torch.zeros_like(f))
        od.zero_grad(); ld.backward(); od.step()
        lg = bce(d.module(g(z)), torch.ones(128, 1))
        og.zero_grad(); lg.backward(); og.step()
        if rank == 0 and it % 100 == 0:
            print(f"it {it} d {ld.item():.3f} g {lg.item():.3f}", flush=True)
            torch.save(fake, os.path.join(args.samples, "latest.pt"))


if __name__ == "__main__":
    main()
