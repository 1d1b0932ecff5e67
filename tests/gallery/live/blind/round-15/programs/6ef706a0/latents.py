import torch


class LatentStream:
    """Noised video latents and the velocity the model has to predict."""

    def __init__(self, size, frames, latent, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.size, self.frames, self.latent = size, frames, latent

    def next(self):
        clean = torch.randn(self.size, 1, self.latent, generator=self.gen).expand(-1, self.frames, -1)
        noise = torch.randn(self.size, self.frames, self.latent, generator=self.gen)
        t = torch.rand(self.size, 1, 1, generator=self.gen)
        return (1 - t) * clean + t * noise, noise - clean
