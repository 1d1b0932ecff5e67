import torch
import torch.distributed as dist


class DomainLedger:
    """Token weighted loss per domain, summed over the ranks.

    Each domain reduces on its own group, so the reductions of different
    domains do not queue up behind the gradient buckets.
    """

    def __init__(self, tracked):
        self.tracked = frozenset(tracked)
        self.groups = {name: dist.new_group() for name in tracked}
        self.totals = {name: torch.zeros(2, dtype=torch.float64) for name in tracked}

    def add(self, name, losses):
        if name in self.tracked:
            self.totals[name] += torch.tensor([losses.sum().item(), losses.numel()], dtype=torch.float64)

    def reduce(self, configured):
        report = {}
        for name in self.tracked & set(configured):
            cell = self.totals[name]
            dist.all_reduce(cell, group=self.groups[name])
            report[name] = (cell[0] / cell[1].clamp(min=1)).item()
            cell.zero_()
        return report


class Mixture:
    def __init__(self, config, rank):
        self.phases = config["phases"]
        self.rng = torch.Generator().manual_seed(1000 + rank)
        self.batch_size = config["batch_size"]

    def phase(self, step):
        for p in self.phases:
            if step < p["until"]:
                return p
        return self.phases[-1]

    def draw(self, step):
        names = self.phase(step)["domains"]
        ids = torch.randint(len(names), (self.batch_size,), generator=self.rng)
        x = torch.randn(self.batch_size, 48, generator=self.rng) + ids.unsqueeze(1) * 0.1
        y = (x.sum(1) > 0).long()
        return names, ids, x, y
