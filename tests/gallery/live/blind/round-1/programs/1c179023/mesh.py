import torch.distributed as dist


class Mesh2D:
    def __init__(self, tp):
        self.rank, world = dist.get_rank(), dist.get_world_size()
        self.tp_size, self.dp_size = tp, world // tp
        self.tp_rank, self.dp_rank = self.rank % tp, self.rank // tp
        self.groups = {}
        for d in range(self.dp_size):
            ranks = list(range(d * tp, (d + 1) * tp))
            g = dist.new_group(ranks)
            if self.rank in ranks:
                self.groups["tp"] = g
        for t in range(tp):
            ranks = list(range(t, world, tp))
            g = dist.new_group(ranks)
            if self.rank in ranks:
                self.groups["dp"] = g
