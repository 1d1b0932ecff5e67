"""Means over all ranks."""
import torch.distributed as dist


class Running:
    def __init__(self):
        self.losses, self.hits = [], []

    def add(self, loss, hit):
        self.losses.append(loss)
        self.hits.append(hit)

    def report(self):
        mine = {"loss": sum(self.losses) / len(self.losses), "acc": sum(self.hits) / len(self.hits)}
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, mine)
        self.losses, self.hits = [], []
        return " ".join(f"{k}={sum(one[k] for one in everyone) / len(everyone):.4f}" for k in mine)
