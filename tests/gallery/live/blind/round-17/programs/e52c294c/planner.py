from dataclasses import dataclass


@dataclass
class TableConfig:
    name: str
    rows: int
    pooling: int
    dim: int

    @property
    def storage(self):
        return self.rows * self.dim * 4


def greedy_plan(tables, world_size):
    """Table-wise placement: biggest table first, onto the emptiest rank."""
    used = [0] * world_size
    plan = {}
    for t in sorted(tables, key=lambda t: t.storage, reverse=True):
        rank = min(range(world_size), key=lambda r: used[r])
        plan[t.name] = rank
        used[rank] += t.storage
    return plan, used
