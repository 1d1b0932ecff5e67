import itertools
import os
import tempfile
import time

import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, set_seed

from shards import ShardFetcher, serve, write_shards


class ConvNet(nn.Module):
    def __init__(self, c=64):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, c, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                 nn.Conv2d(c, 2 * c, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                 nn.Linear(2 * c, 10))

    def forward(self, x):
        return self.net(x)


def main():
    torch.set_num_threads(1)
    acc = Accelerator(cpu=True)
    set_seed(2)
    where = [None, None]
    if acc.is_main_process:
        where[0] = tempfile.mkdtemp(prefix="wds-")
        write_shards(os.path.join(where[0], "store"))
        where[1] = serve(os.path.join(where[0], "store"))
    broadcast_object_list(where)
    root, port = where
    fetcher = ShardFetcher(port, os.path.join(root, f"cache-{acc.process_index}"), acc.process_index, acc.num_processes)
    model = ConvNet()
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    model, opt = acc.prepare(model, opt)
    batches = fetcher.batches(32)
    held_out = list(itertools.islice(batches, 10))
    for epoch in range(10000):
        t0 = time.time()
        for x, y in itertools.islice(batches, 120):
            loss = nn.functional.cross_entropy(model(torch.as_tensor(x)), torch.as_tensor(y))
            acc.backward(loss)
            opt.step()
            opt.zero_grad()
        model.eval()
        hits = torch.zeros(2)
        with torch.no_grad():
            for _ in range(6):
                for x, y in held_out:
                    hits += torch.tensor([(model(torch.as_tensor(x)).argmax(-1) == torch.as_tensor(y)).sum(), len(y)])
        model.train()
        hits = acc.reduce(hits, reduction="sum")
        acc.print(f"epoch {epoch} loss {loss.item():.4f} acc {(hits[0] / hits[1]).item():.3f} {time.time() - t0:.1f}s", flush=True)
        if epoch % 5 == 4:
            acc.save_state(os.path.join(root, "state"))
    acc.end_training()


if __name__ == "__main__":
    main()
