import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from shards import train_loader, val_loader, write_shards


@torch.no_grad()
def validate(net, loader):
    net.eval()
    right, count = 0, 0
    for x, y in loader:
        y = torch.as_tensor(y)
        right += (net(x).argmax(1) == y).sum().item()
        count += len(y)
        time.sleep(0.4)
    net.train()
    return right / count


def save(net, folder, epoch):
    path = os.path.join(folder, "last.pt")
    torch.save({"epoch": epoch, "model": net.state_dict()}, path + ".part")
    time.sleep(2.0)
    os.replace(path + ".part", path)


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank = dist.get_rank()
    folder = os.environ["SHARD_DIR"]
    if rank == 0:
        write_shards(folder, "train", count=9, samples=120)
        write_shards(folder, "val", count=1, samples=160)
    dist.barrier()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.BatchNorm1d(48), nn.Linear(48, 5)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    loader = train_loader(folder)
    step, began = 0, time.time()
    for epoch in range(1000):
        for x, y in loader:
            loss = F.cross_entropy(model(x), torch.as_tensor(y))
            time.sleep(0.12)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if rank == 0 and step % 10 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f} {time.time() - began:.1f}s", flush=True)
        if rank == 0:
            accuracy = validate(model.module, val_loader(folder))
            save(model.module, folder, epoch)
            print(f"epoch {epoch} accuracy {accuracy:.3f}", flush=True)
        dist.barrier()


if __name__ == "__main__":
    main()
