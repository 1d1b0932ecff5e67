import torch


class MaskedFrames:
    def __init__(self, batch, frames, dim):
        self.shape = (batch, frames, dim)

    def next(self):
        base = torch.randn(self.shape[0], 1, self.shape[2])
        target = base + 0.1 * torch.randn(self.shape)
        mask = torch.rand(self.shape[:2]) < 0.4
        feats = target.masked_fill(mask.unsqueeze(-1), 0.0)
        return feats, target, mask
