import io
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn

from shard_stream import ShardStream


class StoreAverager:
    """Exchanges weights through the rendezvous store instead of all-reduce."""

    def __init__(self, store, rank, world_size):
        self.store = dist.PrefixStore("avg", store)
        self.rank, self.world_size, self.round = rank, world_size, 0

    def average(self, model):
        buf = io.BytesIO()
        torch.save(model.state_dict(), buf)
        self.store.set(f"{self.round}/{self.rank}", buf.getvalue())
        states = []
        for peer in range(self.world_size):
            blob = self.store.get(f"{self.round}/{peer}")
            states.append(torch.load(io.BytesIO(blob)))
        model.load_state_dict({k: sum(s[k] for s in states) / len(states) for k in states[0]})
        if self.round >= 2:
            self.store.delete_key(f"{self.round - 2}/{self.rank}")
        self.round += 1


def worker_main(rank, world_size, port, folder, sync_every):
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, world_size + 1, is_master=False, timeout=timedelta(hours=3))
    dist.init_process_group("gloo", store=dist.PrefixStore("pg", store), rank=rank, world_size=world_size,
                            timeout=timedelta(hours=3))
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 1))
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    averager = StoreAverager(store, rank, world_size)
    seen, step, t0 = 0, 0, time.time()
    for x, y in ShardStream(folder, rank, world_size):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(-1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.12)
        seen, step = seen + len(y), step + 1
        if step % sync_every == 0:
            averager.average(model)
            if rank == 0:
                print(f"round {averager.round} samples {seen} loss {loss.item():.4f}", flush=True)
    print(f"worker {rank}: {seen} samples in {time.time() - t0:.1f}s", flush=True)
    torch.save(model.state_dict(), os.path.join(os.path.dirname(folder), f"final-{rank}.pt"))
