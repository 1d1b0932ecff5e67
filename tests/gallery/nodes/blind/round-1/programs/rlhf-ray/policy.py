import os
import socket
from datetime import timedelta

import ray
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@ray.remote
class PolicyActor:
    def __init__(self, rank, world):
        os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), str(world)
        self.rank = rank

    def address(self):
        with socket.socket() as free:
            free.bind(("", 0))
            return ray.util.get_node_ip_address(), free.getsockname()[1]

    def connect(self, host, port):
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = host, str(port)
        dist.init_process_group("gloo", timeout=timedelta(hours=2))
        self.model = DDP(nn.Sequential(nn.Embedding(500, 32), nn.Flatten(), nn.Linear(32 * 16, 500)))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def fit(self, episode, critic):
        status = {}
        pending = critic.fit.remote(episode) if critic is not None else None
        for _ in range(10):
            tokens = torch.randint(0, 500, (8, 16))
            loss = nn.functional.cross_entropy(self.model(tokens), tokens[:, 0])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        status["policy_loss"] = loss.item()
        status["reward"] = float(torch.rand(()))
        if pending is not None:
            status.update(ray.get(pending))
        return self.mean_over_ranks(status)

    def mean_over_ranks(self, status):
        merged = {}
        for name in sorted(status, reverse=True):
            value = torch.tensor([status[name]])
            dist.all_reduce(value)
            merged[name] = value.item() / dist.get_world_size()
        return merged
