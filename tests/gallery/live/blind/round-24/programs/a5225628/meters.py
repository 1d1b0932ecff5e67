import torch
import torch.distributed as dist


class MeterBank:
    """Running loss/accuracy per task, averaged over the ranks that train the task."""

    def __init__(self, groups):
        self.groups = groups
        self.sums = {}

    def update(self, task, loss, correct, count):
        if task not in self.sums:
            self.sums[task] = torch.zeros(3)
        self.sums[task] += torch.tensor([loss * count, float(correct), float(count)])

    def compute(self):
        out = {}
        for task, sums in self.sums.items():
            dist.all_reduce(sums, group=self.groups[task])
            out[task] = {"loss": (sums[0] / sums[2]).item(), "acc": (sums[1] / sums[2]).item()}
        return out

    def reset(self):
        self.sums = {}
