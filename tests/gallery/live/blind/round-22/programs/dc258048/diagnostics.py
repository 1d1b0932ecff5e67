import torch
import torch.distributed as dist

BINS = 12


class Diagnostics:
    """Evaluation products over the data-parallel dimension of the mesh."""

    def __init__(self, requested, supported, dp_mesh):
        self.group = dp_mesh.get_group()
        self.size = dp_mesh.size()
        self.products = {name: None for name in requested & supported}

    def _local(self, name, pred, target):
        err = pred - target
        if name == "mae":
            return err.abs().mean().reshape(1)
        if name == "rmse":
            return err.pow(2).mean().sqrt().reshape(1)
        if name == "bias":
            return err.mean().reshape(1)
        if name == "spread_hist":
            return torch.histc(pred.std(-1), bins=BINS, min=0, max=4)
        if name == "rank_hist":
            return torch.histc(pred.argsort(-1).float()[..., 0], bins=BINS, min=0, max=16)
        if name == "energy_spectrum":
            return torch.fft.rfft(pred, n=2 * BINS - 2, dim=-1).abs().mean(dim=(0, 1))
        raise KeyError(name)

    def _consolidate(self, value):
        if value.numel() == 1:
            dist.all_reduce(value, group=self.group)
            return value / self.size
        parts = torch.empty(self.size * BINS)
        dist.all_gather_into_tensor(parts, value.contiguous(), group=self.group)
        return parts.view(self.size, BINS).mean(0)

    @torch.no_grad()
    def __call__(self, pred, target):
        for name in self.products:
            self.products[name] = self._consolidate(self._local(name, pred, target))
        return self.products
