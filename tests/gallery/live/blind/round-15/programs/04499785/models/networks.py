import torch
from torch import nn


def generator(nf=12, blocks=2):
    def res():
        return nn.Sequential(nn.Conv2d(2 * nf, 2 * nf, 3, padding=1), nn.InstanceNorm2d(2 * nf), nn.ReLU())

    class Res(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = res()

        def forward(self, x):
            return x + self.f(x)

    return nn.Sequential(
        nn.Conv2d(3, nf, 7, padding=3), nn.ReLU(),
        nn.Conv2d(nf, 2 * nf, 3, stride=2, padding=1), nn.ReLU(),
        *[Res() for _ in range(blocks)],
        nn.Upsample(scale_factor=2), nn.Conv2d(2 * nf, nf, 3, padding=1), nn.ReLU(),
        nn.Conv2d(nf, 3, 7, padding=3), nn.Tanh(),
    )


def discriminator(nf=12):
    return nn.Sequential(
        nn.Conv2d(3, nf, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
        nn.Conv2d(nf, 2 * nf, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
        nn.Conv2d(2 * nf, 1, 4, padding=1),
    )


def gan_loss(pred, real):
    return (pred - float(real)).pow(2).mean()


class ImagePool:
    def __init__(self, size, seed):
        self.size, self.images = size, []
        self.gen = torch.Generator().manual_seed(seed)

    def query(self, img):
        if len(self.images) < self.size:
            self.images.append(img.detach().clone())
            return img.detach()
        if torch.rand(1, generator=self.gen).item() < 0.5:
            i = int(torch.randint(self.size, (1,), generator=self.gen))
            old = self.images[i]
            self.images[i] = img.detach().clone()
            return old
        return img.detach()
