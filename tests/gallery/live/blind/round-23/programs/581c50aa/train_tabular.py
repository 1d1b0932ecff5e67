import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from datasets import Dataset
from datasets.distributed import split_dataset_by_node
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader

from progress import ProgressTracker
from remote_fs import Bucket

COLUMNS = 24


def make_table(rows=3000):
    gen = torch.Generator().manual_seed(0)
    x = torch.randn(rows, COLUMNS, generator=gen)
    y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).long()
    return Dataset.from_dict({"x": x.tolist(), "y": y.tolist()}).with_format("torch")


class TabularNet(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(COLUMNS, dim), nn.Linear(dim, dim)])
        self.out = nn.Linear(dim, 2)

    def forward(self, x):
        for block in self.blocks:
            x = F.relu(block(x))
        return self.out(x)


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank, world = dist.get_rank(), dist.get_world_size()
    table = split_dataset_by_node(make_table(), rank=rank, world_size=world)
    loader = DataLoader(table, batch_size=16, drop_last=True)
    torch.manual_seed(0)
    net = TabularNet()
    mesh = init_device_mesh("cpu", (world,))
    for block in net.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(net, mesh=mesh)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)

    tracker = None
    if rank == 0:
        tracker = ProgressTracker(tempfile.mkdtemp(prefix="exp-"), Bucket(tempfile.mkdtemp(prefix="bucket-")))
    step = 0
    for epoch in range(1000):
        for batch in loader:
            loss = F.cross_entropy(net(batch["x"]), batch["y"])
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.12)
            step += 1
            if tracker is not None:
                outer = torch.einsum("bi,bj->bij", batch["x"], batch["x"]).float()
                tracker.update(step, loss.item(), outer.repeat(1, 1, 3)[:, :, :64].contiguous())
                if step % 5 == 0:
                    print(f"{time.strftime('%H:%M:%S')} epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
