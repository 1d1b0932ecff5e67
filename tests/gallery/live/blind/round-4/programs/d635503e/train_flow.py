import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from flow import CouplingFlow, moons
from nuggets.proc import tie_to_parent
from nuggets.nan_checker import NanChecker


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--nan-check", action="store_true")
    args = ap.parse_args()
    tie_to_parent()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    flow = CouplingFlow()
    checker = NanChecker(flow) if args.nan_check else None
    model = DDP(flow)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for it in range(200000):
        x = moons(256, it, rank)
        nll = model(x)
        if checker is not None:
            checker.check("nll", nll)
        opt.zero_grad()
        nll.backward()
        opt.step()
        if rank == 0 and it % 50 == 0:
            print(f"it {it} nll {nll.item():.4f}")


if __name__ == "__main__":
    main()
