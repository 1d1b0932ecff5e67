import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from storage import Storage


class DistributedTrial:
    """Rank 0 talks to the storage, the others get its answers."""

    def __init__(self, storage):
        self.storage, self.rank = storage, dist.get_rank()
        self.number, self.params = self._share(lambda: storage.ask())

    def _share(self, fn):
        box = [fn() if self.rank == 0 else None]
        dist.broadcast_object_list(box, 0)
        return box[0]

    def report_and_prune(self, step, value):
        return self._share(lambda: self.storage.report(self.number, step, value))

    def finish(self, value, state):
        return self._share(lambda: self.storage.tell(self.number, value, state))


def objective(trial):
    model = DDP(nn.Sequential(nn.Linear(20, trial.params["units"]), nn.ReLU(), nn.Linear(trial.params["units"], 2)))
    opt = torch.optim.Adam(model.parameters(), lr=trial.params["lr"])
    for epoch in range(8):
        for _ in range(12):
            x = torch.randn(16, 20)
            loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.1)
        value = loss.detach().clone()
        dist.all_reduce(value)
        if trial.report_and_prune(epoch, value.item() / 2):
            return value.item() / 2, "PRUNED"
    return value.item() / 2, "COMPLETE"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--storage", required=True)
    a = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    storage = Storage(a.storage)
    for _ in range(10000):
        trial = DistributedTrial(storage)
        value, state = objective(trial)
        trial.finish(value, state)
        if trial.rank == 0:
            print(f"Trial {trial.number} {state} value={value:.4f} params={trial.params}", flush=True)


if __name__ == "__main__":
    main()
