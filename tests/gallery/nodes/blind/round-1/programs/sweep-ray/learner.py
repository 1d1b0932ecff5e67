import os
import socket
import time

import ray
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@ray.remote
class Learner:
    def __init__(self, rank, world):
        self.rank, self.world = rank, world

    def meeting(self):
        with socket.socket() as one:
            one.bind(("", 0))
            return f"tcp://{ray.util.get_node_ip_address()}:{one.getsockname()[1]}"

    def run(self, meeting):
        os.environ["RANK"], os.environ["WORLD_SIZE"] = str(self.rank), str(self.world)
        dist.init_process_group("gloo", init_method=meeting, rank=self.rank, world_size=self.world)
        model = DDP(nn.Sequential(nn.Linear(40, 64), nn.Tanh(), nn.Linear(64, 5)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        began = time.time()
        step = 0
        while time.time() - began < 1500:
            x, y = torch.randn(64, 40), torch.randint(5, (64,))
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 100 == 0:
                if self.rank == 0:
                    print(f"step {step} loss {loss.item():.3f}; validating", flush=True)
                    self.validate(model.module, step)
                dist.barrier()
        return step

    @torch.no_grad()
    def validate(self, model, step):
        """The long test set, on one rank: some twenty seconds."""
        right = seen = 0
        until = time.time() + 20
        fold = 0
        while time.time() < until:
            x, y = torch.randn(4096, 40), torch.randint(5, (4096,))
            right += (model(x).argmax(1) == y).sum().item()
            seen += len(y)
            fold += 1
            if fold % 200 == 0:
                print(f"validate {step}: {seen} samples, accuracy {right / seen:.4f}", flush=True)
