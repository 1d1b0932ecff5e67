import queue
import random
import tempfile
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh

from checkpointing import AsyncSaver
from model import Encoder, shard


class Prefetcher(threading.Thread):
    def __init__(self, rank, depth=6):
        super().__init__(daemon=True)
        self.q = queue.Queue(maxsize=depth)
        self.gen = torch.Generator().manual_seed(rank)

    def run(self):
        while True:
            self.q.put(torch.randint(0, 96, (8, 16), generator=self.gen))

    def __iter__(self):
        while True:
            yield self.q.get()


@torch.no_grad()
def validate(model, rank, round_no):
    world = dist.get_world_size()
    docs = 8 + 6 * ((rank + round_no) % world)
    total = torch.zeros(2)
    for i in range(20):
        ids = torch.randint(0, 96, (4, 16))
        total += torch.tensor([F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).item(), 1.0])
        time.sleep(0.1)
    for _ in range(docs):
        time.sleep(0.2)
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("cpu:gloo", timeout=timedelta(minutes=30))
    rank, world = dist.get_rank(), dist.get_world_size()
    box = [tempfile.mkdtemp(prefix="enc_") if rank == 0 else None]
    dist.broadcast_object_list(box, src=0)
    mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("dp",))
    torch.manual_seed(0)
    model = shard(Encoder(), mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    saver = AsyncSaver(box[0])
    loader = Prefetcher(rank)
    loader.start()
    load = random.Random(7)
    for step, ids in enumerate(loader, start=1):
        loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        opt.zero_grad()
        loss.backward()
        heavy = load.randrange(world)
        time.sleep(0.25 if rank == heavy else 0.1)
        opt.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step % 40 == 0:
            saver.save(step, model)
        if step % 100 == 0:
            val = validate(model, rank, step // 100)
            if rank == 0:
                print(f"step {step} val_loss {val:.4f}", flush=True)


if __name__ == "__main__":
    main()
