import argparse
import itertools
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, set_seed
from torch.distributed.algorithms.join import Join

from feed import Prefetcher, start_service

BATCH = 32


def plan(rank, world):
    """Part sizes differ a little between the ranks and change sides from part to part."""
    for k in itertools.count():
        yield 1000 + world * k + rank, BATCH * (60 + 2 * ((k + rank) % 2))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                      nn.Conv2d(48, 96, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.out = nn.Sequential(nn.Flatten(), nn.Linear(1536, 128), nn.ReLU(), nn.Linear(128, 5))

    def forward(self, x):
        return self.out(self.features(x))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--minutes", type=float, default=20)
    args = p.parse_args()
    torch.set_num_threads(1)
    acc = Accelerator(cpu=True)
    set_seed(21)
    port = [start_service() if acc.is_main_process else None]
    broadcast_object_list(port)
    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    model, opt = acc.prepare(model, opt)
    parts = Prefetcher(port[0], plan(acc.process_index, acc.num_processes))
    held_out = Prefetcher(port[0], ((9 + acc.process_index, BATCH * 16) for _ in itertools.count()))

    begin, step = time.time(), 0
    for part in itertools.count(1):
        x, y = parts.next()
        t0, loss = time.time(), None
        with Join([model]):
            for i in range(0, len(y), BATCH):
                loss = F.cross_entropy(model(x[i:i + BATCH]), y[i:i + BATCH])
                acc.backward(loss)
                opt.step()
                opt.zero_grad()
                step += 1
        acc.print(f"part {part} step {step} loss {loss.item():.4f} {len(y) / (time.time() - t0):.0f} img/s", flush=True)
        if part % 3 == 0:
            vx, vy = held_out.next()
            model.eval()
            with torch.no_grad():
                hit = torch.stack([(model.module(vx[i:i + BATCH]).argmax(-1) == vy[i:i + BATCH]).float().mean()
                                   for i in range(0, len(vy), BATCH)])
            model.train()
            acc.print(f"part {part} held-out accuracy {acc.gather(hit).mean().item():.3f}", flush=True)
        if part % 5 == 0:
            acc.wait_for_everyone()
            acc.save(acc.unwrap_model(model).state_dict(), f"/tmp/net-{port[0]}.pt")
        more = torch.tensor([1.0 if time.time() - begin < args.minutes * 60 else 0.0])
        if acc.reduce(more, reduction="sum").item() < acc.num_processes:
            break
    acc.end_training()


if __name__ == "__main__":
    main()
