import torch
import torch.distributed as dist


class Evaluator:
    """Scores the first model replica on the held-out split."""

    def __init__(self, mesh, make_batch, batches):
        self.replica = mesh.get_local_rank("dp")
        self.members = mesh.mesh[0].tolist()
        self.make_batch = make_batch
        self.batches = batches
        self.group = None

    def scores_group(self):
        if self.group is None:
            self.group = dist.new_group(self.members)
        return self.group

    @torch.no_grad()
    def run(self, net):
        if self.replica != 0:
            return None
        net.eval()
        hits = torch.zeros(2)
        for i in range(self.batches):
            x, y = self.make_batch(seed=900_000 + i)
            hits[0] += (net(x).argmax(-1) == y).sum()
            hits[1] += len(y)
        dist.all_reduce(hits, group=self.scores_group())
        net.train()
        return (hits[0] / hits[1]).item()
