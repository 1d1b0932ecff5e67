import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from distutils_torch import main_process_first, setup, tie_to_parent
from series import Windows
from model import build_model


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model")
    ap.add_argument("--context", type=int, default=96)
    ap.add_argument("--horizon", type=int, default=24)
    args = ap.parse_args()
    tie_to_parent()
    rank = setup()
    if rank == 0:
        print(f"loading config of {args.model}")
    with main_process_first():
        net = build_model(args.model, args.context, args.horizon)
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step, (x, y) in enumerate(Windows(rank, args.context, args.horizon)):
        loss = (model(x) - y).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 20 == 0:
            print(f"step {step}: mae {loss.item():.4f}")


if __name__ == "__main__":
    main()
