import datetime
import os
import socket

import ray
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from images import Images


def small_net():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(16 * 7 * 7, 10),
    )


@ray.remote
class TrainWorker:
    def __init__(self, rank, world):
        self.rank, self.world = rank, world

    def meeting_point(self):
        with socket.socket() as one:
            one.bind(("", 0))
            return ray.util.get_node_ip_address(), one.getsockname()[1]

    def setup(self, address, port):
        os.environ.update(MASTER_ADDR=address, MASTER_PORT=str(port), RANK=str(self.rank), WORLD_SIZE=str(self.world))
        dist.init_process_group("gloo", timeout=datetime.timedelta(hours=1))
        torch.manual_seed(0)
        self.model = DDP(small_net())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.data = Images(self.rank, self.world)

    def train_epoch(self, epoch):
        total = 0.0
        for step, (x, y) in enumerate(self.data.batches(epoch)):
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
            if step % 20 == 0:
                print(f"rank {self.rank} epoch {epoch} step {step} loss {loss.item():.3f}", flush=True)
        return total / (step + 1)
