import logging
import os
import queue
import threading
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from parts import PartLoader

MINUTES = 20


class LogWriter(threading.Thread):
    def __init__(self):
        super().__init__(name="log-writer", daemon=True)
        self.inbox = queue.Queue()
        self.start()

    def run(self):
        while True:
            logging.info("%s", self.inbox.get())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(128, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 128))

    def forward(self, x):
        return self.body(x)


def reduced(values):
    t = torch.tensor(values)
    dist.all_reduce(t)
    return (t / dist.get_world_size()).tolist()


def train_part(model, opt, part, writer, number):
    done = 0
    try:
        with model.join(throw_on_early_termination=True):
            for i, x in enumerate(part):
                opt.zero_grad()
                loss = F.mse_loss(model(x), x.roll(1, dims=1))
                loss.backward()
                opt.step()
                mean = reduced([loss.item()])[0]
                done += 1
                if writer and i % 40 == 0:
                    writer.inbox.put(f"part {number} batch {i} loss {mean:.4f}")
    except RuntimeError as err:
        if "exhausted" not in str(err):
            raise
    return done


@torch.no_grad()
def evaluate(model):
    net = model.module.eval()
    gen = torch.Generator().manual_seed(7 + dist.get_rank())
    loss = 0.0
    for _ in range(80):
        x = torch.randn(64, 128, generator=gen)
        loss += F.mse_loss(net(x), x.roll(1, dims=1)).item() / 80
    net.train()
    return reduced([loss])[0]


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    writer = LogWriter() if rank == 0 else None
    torch.manual_seed(11)
    model = DDP(Net())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = PartLoader(rank)
    began, number = time.time(), 0
    while True:
        part = loader.take(number)
        loader.prepare(number + 1)
        done = train_part(model, opt, part, writer, number)
        score = evaluate(model)
        mean_done, age = reduced([float(done), time.time() - began])
        if writer:
            writer.inbox.put(f"part {number}: {mean_done:.1f} batches, eval {score:.4f}")
        number += 1
        if age > MINUTES * 60:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
