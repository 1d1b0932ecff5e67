import datetime
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from click_stream import ADS, click_batches
from metric_writer import MetricWriter


class ClickModel(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.user = nn.Embedding(5000, dim)
        self.ad = nn.Embedding(ADS, dim)
        self.hour = nn.Embedding(24, dim)
        self.head = nn.Sequential(nn.Linear(3 * dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, uid, ad, hour):
        return self.head(torch.cat([self.user(uid), self.ad(ad), self.hour(hour)], -1)).squeeze(-1)


def to_tensors(batch):
    names = ("uid", "ad", "hour", "click")
    return [torch.tensor([row[n] for row in batch]) for n in names]


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(hours=1))
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(ClickModel())
    opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
    writer = MetricWriter(rank)
    for step, batch in enumerate(click_batches(rank, world_size, batch_size=16), 1):
        uid, ad, hour, click = to_tensors(batch)
        loss = nn.functional.binary_cross_entropy_with_logits(model(uid, ad, hour), click.float())
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.2)
        writer.log(step=step, loss=loss.item(), t=time.time())
        if step % 10 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    writer.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
