import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from data import loader
from tracking import Disabled, ServiceApi


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(hours=2))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    api = ServiceApi(os.environ["TRACK_SOCKET"]) if rank == 0 else Disabled()

    model = DDP(nn.Sequential(nn.Linear(64, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 10)))
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    train, sampler = loader(api, 3072, 32, rank, world, True)
    valid, _ = loader(api, 384, 64, rank, world, False)

    for epoch in range(10000):
        sampler.set_epoch(epoch)
        t0 = time.time()
        for i, (x, y) in enumerate(train):
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if i % 20 == 0:
                api.publish("scalar", epoch=epoch, step=i, loss=float(loss))
                if rank == 0:
                    print(f"[epoch {epoch}] step {i} loss {float(loss):.4f}", flush=True)
        correct = torch.zeros(2)
        with torch.no_grad():
            for x, y in valid:
                correct += torch.tensor([(model.module(x).argmax(1) == y).sum(), len(y)])
        dist.all_reduce(correct)
        acc = float(correct[0] / correct[1])
        api.publish("valid", epoch=epoch, acc=acc)
        if rank == 0:
            print(f"[epoch {epoch}] loss {float(loss):.4f} acc {acc:.3f} {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
