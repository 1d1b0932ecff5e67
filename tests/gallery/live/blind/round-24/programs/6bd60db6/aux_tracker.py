import torch
import torch.distributed as dist


class AuxLossTracker:
    def __init__(self, num_layers):
        self.num_layers = num_layers
        self.values = {}

    def record(self, name, layer_idx, value):
        if name not in self.values:
            self.values[name] = torch.zeros(self.num_layers)
        self.values[name][layer_idx] += value.detach()

    def reduce_across_stages(self, group):
        names = list(self.values.keys())
        for name in names:
            dist.all_reduce(self.values[name], group=group)

    def averages(self, count):
        return {name: (v.sum() / count).item() for name, v in self.values.items()}

    def clear(self):
        self.values = {}


tracker = AuxLossTracker(num_layers=6)
