import gc
import random
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

torch.set_num_threads(1)


class Interaction:
    __slots__ = ("user", "items", "next")

    def __init__(self, user, items):
        self.user, self.items, self.next = user, items, None


class History:
    def __init__(self, users, seed):
        self.rng = random.Random(seed)
        self.last = {u: None for u in range(users)}

    def extend(self, n):
        for _ in range(n):
            u = self.rng.randrange(len(self.last))
            ev = Interaction(u, [self.rng.randrange(500) for _ in range(4)])
            ev.next = self.last[u]
            self.last[u] = ev

    def trim(self, depth=300):
        for ev in self.last.values():
            for _ in range(depth):
                if ev is None:
                    break
                ev = ev.next
            if ev is not None:
                ev.next = None

    def batch(self, n):
        rows = []
        while len(rows) < n:
            ev = self.last[self.rng.randrange(len(self.last))]
            if ev is not None:
                rows.append(ev.items)
        return torch.tensor(rows)


def main():
    gc.disable()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.EmbeddingBag(500, 16), nn.Linear(16, 8)))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    hist = History(2000, seed=rank)
    hist.extend(150000)
    for step in range(100000):
        x = hist.batch(16)
        loss = nn.functional.cross_entropy(model(x), x[:, 0] % 8)
        opt.zero_grad()
        loss.backward()
        opt.step()
        hist.extend(200)
        time.sleep(0.1)
        if step % 20 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if (step + 35 * rank) % 70 == 69:
            t0 = time.time()
            hist.trim()
            for _ in range(5):
                gc.collect()
            print(f"rank {rank} step {step}: history trimmed and collected in {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
