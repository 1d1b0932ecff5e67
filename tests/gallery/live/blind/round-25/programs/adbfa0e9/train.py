import datetime
import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from saving import BackgroundSaver


@torch.no_grad()
def evaluate(model, rank, batches=24):
    hits = torch.zeros(2)
    for i in range(batches):
        g = torch.Generator().manual_seed(5000 + i * 7 + rank)
        x = torch.randn(32, 32, generator=g)
        hits += torch.tensor([(model(x).argmax(-1) == (x.sum(-1) > 0)).sum().item(), 32.0])
        time.sleep(0.3)
    dist.all_reduce(hits)
    return (hits[0] / hits[1]).item()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(minutes=30))
    rank = dist.get_rank()
    box = [tempfile.mkdtemp(prefix="ckpt-") if rank == 0 else None]
    dist.broadcast_object_list(box, src=0)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 2))
    model = DistributedDataParallel(net)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    saver = BackgroundSaver(box[0])
    gen = torch.Generator().manual_seed(rank)
    for step in range(1, 10 ** 6):
        x = torch.randn(16, 32, generator=gen)
        loss = F.cross_entropy(model(x), (x.sum(-1) > 0).long())
        time.sleep(0.2 + (0.1 if step % 3 == rank else 0.0))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step % 50 == 0:
            saver.save(step, model, opt)
        if step % 120 == 0:
            acc = evaluate(net, rank)
            if rank == 0:
                print(f"step {step} accuracy {acc:.3f}", flush=True)


if __name__ == "__main__":
    main()
