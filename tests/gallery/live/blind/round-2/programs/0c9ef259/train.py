import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from tracking import Tracker


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))

    def forward(self, x):
        return self.net(x)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--max-steps", type=int, default=500)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = Net()
    net(torch.zeros(1, 3, 24, 24))
    model = DDP(net)
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    tracker = Tracker("resnet-small") if rank == 0 else None
    last = time.time()
    for step in range(args.max_steps):
        x, y = torch.randn(8, 3, 24, 24), torch.randint(0, 10, (8,))
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        gnorm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if rank == 0:
            now = time.time()
            tracker.log_metrics({"loss": loss.item(), "grad_norm": gnorm.item(), "lr": 0.01, "step_time": now - last,
                                 "samples": step * 24}, step)
            print(f"step {step} loss {loss.item():.4f} {now - last:.2f}s/step", flush=True)
            last = now


if __name__ == "__main__":
    main()
