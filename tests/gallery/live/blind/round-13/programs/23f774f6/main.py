import fcntl
import json
import os
import socket
import tempfile
import threading
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from feed import Feed
from saver import AsyncSaver

WORLD = 3


class ByteGRU(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.emb = nn.Embedding(256, d)
        self.gru = nn.GRU(d, d, batch_first=True)
        self.out = nn.Linear(d, 256)

    def forward(self, x):
        h, _ = self.gru(self.emb(x[:, :-1]))
        return nn.functional.cross_entropy(self.out(h).flatten(0, 1), x[:, 1:].flatten())


def heartbeat(path, rank, stop):
    while not stop.wait(5.0):
        with open(path, "a+") as fh:
            fcntl.flock(fh, fcntl.LOCK_EX)
            fh.seek(0)
            lines = fh.readlines()[-50:]
            lines.append(json.dumps({"rank": rank, "time": time.time()}) + "\n")
            fh.truncate(0)
            fh.writelines(lines)


def run(rank, port, root):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD)
    torch.manual_seed(0)
    stop = threading.Event()
    threading.Thread(target=heartbeat, args=(os.path.join(root, "alive.jsonl"), rank, stop), daemon=True).start()
    feed = Feed(rank + 1)
    batches = iter(feed)
    held_out = [next(batches) for _ in range(12)]
    model = DDP(ByteGRU())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    saver = AsyncSaver(root) if rank == 0 else None
    start = time.time()
    for step in range(1, 10 ** 7):
        loss = model(next(batches))
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 50 == 0 and rank == 0:
            print(f"{time.time() - start:7.1f}s step {step} loss {loss.item():.4f}")
        if step % 200 == 0:
            model.eval()
            with torch.no_grad():
                total = torch.stack([model.module(b) for b in held_out for _ in range(6)]).mean()
            dist.all_reduce(total)
            model.train()
            if rank == 0:
                kept = saver.save(step, model.module)
                print(f"{time.time() - start:7.1f}s step {step} dev {total.item() / WORLD:.4f} saved {kept}")
    stop.set()
    feed.close()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(run, args=(port, tempfile.mkdtemp(prefix="bytes-")), nprocs=WORLD)
