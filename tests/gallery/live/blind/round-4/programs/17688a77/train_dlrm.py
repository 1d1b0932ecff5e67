import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP

from rec.dlrm import DLRM
from rec.logs import clicks


def compact(model):
    t0, n = time.time(), 0
    while time.time() - t0 < 5.0:
        for e in model.module.emb:
            n += int((e.weight.norm(dim=1) < 1e-3).sum())
        time.sleep(0.01)
    return n


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(DLRM())
    opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for epoch in range(5000):
        n, t0 = 0, time.time()
        with Join([model]):
            for dense, sparse, y in clicks(rank, epoch):
                loss = torch.nn.functional.binary_cross_entropy_with_logits(model(dense, sparse), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                n += 1
                if n % 20 == 0:
                    print(f"epoch {epoch} batch {n} bce {loss.item():.4f}")
            print(f"epoch {epoch}: local data exhausted after {n} batches")
        stats = torch.tensor([float(n)])
        dist.all_reduce(stats)
        dropped = compact(model)
        print(f"epoch {epoch} finished, {int(stats)} batches overall, {time.time() - t0:.1f}s, {dropped} cold rows")


if __name__ == "__main__":
    main()
