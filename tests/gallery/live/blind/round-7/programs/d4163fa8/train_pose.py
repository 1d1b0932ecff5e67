import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from control import TrainingController


class PoseTrainer:
    def __init__(self):
        torch.manual_seed(4)
        self.rank = dist.get_rank()
        self.net = DDP(nn.Sequential(nn.Conv2d(1, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
                                     nn.Flatten(), nn.Linear(128, 26)))
        self.opt = torch.optim.Adam(self.net.parameters(), 1e-3)
        self.should_stop = False
        self.controller = TrainingController()

    def fit(self, epochs, batches=25):
        for epoch in range(epochs):
            for _ in range(batches):
                x, y = torch.rand(4, 1, 32, 32), torch.rand(4, 26)
                loss = nn.functional.mse_loss(self.net(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                time.sleep(0.08)
                self.controller.on_batch_end(self)
                if self.should_stop:
                    break
            print(f"[{self.rank}] epoch {epoch} loss {loss.item():.4f}", flush=True)
            if self.should_stop:
                break
        self.finish(loss.detach())

    def finish(self, loss):
        dist.barrier()
        if self.rank == 0:
            torch.save(self.net.module.state_dict(), "pose.ckpt")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=100)
    a = ap.parse_args()
    dist.init_process_group("gloo")
    PoseTrainer().fit(a.epochs)
    dist.destroy_process_group()
