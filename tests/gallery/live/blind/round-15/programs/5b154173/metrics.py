import torch
from torchmetrics import Metric


class FrechetDistance(Metric):
    full_state_update = False

    def __init__(self, dim):
        super().__init__()
        for side in ("real", "fake"):
            self.add_state(f"{side}_sum", torch.zeros(dim, dtype=torch.double), dist_reduce_fx="sum")
            self.add_state(f"{side}_cov", torch.zeros(dim, dim, dtype=torch.double), dist_reduce_fx="sum")
            self.add_state(f"{side}_n", torch.zeros((), dtype=torch.double), dist_reduce_fx="sum")

    def update(self, feats, real):
        side = "real" if real else "fake"
        f = feats.double()
        getattr(self, f"{side}_sum").add_(f.sum(0))
        getattr(self, f"{side}_cov").add_(f.T @ f)
        getattr(self, f"{side}_n").add_(len(f))

    def compute(self):
        mu, cov = {}, {}
        for side in ("real", "fake"):
            n = getattr(self, f"{side}_n")
            m = getattr(self, f"{side}_sum") / n
            mu[side] = m
            cov[side] = getattr(self, f"{side}_cov") / n - torch.outer(m, m)
        cross = torch.linalg.eigvals(cov["real"] @ cov["fake"]).real.clamp(min=0).sqrt().sum()
        return (mu["real"] - mu["fake"]).square().sum() + cov["real"].trace() + cov["fake"].trace() - 2 * cross
