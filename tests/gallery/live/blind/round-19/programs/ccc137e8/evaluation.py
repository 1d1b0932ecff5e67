import torch
import torch.distributed as dist

from net import synthetic_digits


class Evaluator:
    def __init__(self, world_size, batches=10):
        self.batches = batches
        self.group = dist.new_group(list(range(world_size)), backend="gloo")

    @torch.no_grad()
    def __call__(self, model):
        model.eval()
        stats = torch.zeros(2)
        for _ in range(self.batches):
            x, y = synthetic_digits(64)
            pred = model.module(x).argmax(1)
            stats += torch.tensor([(pred == y).sum().item(), len(y)])
        dist.all_reduce(stats, group=self.group)
        return (stats[0] / stats[1]).item()
