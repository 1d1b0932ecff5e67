import torch


def volume(seed, depth=16, size=64):
    g = torch.Generator().manual_seed(seed)
    c = torch.randint(16, 48, (2,), generator=g)
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    m = ((yy - c[0]) ** 2 + (xx - c[1]) ** 2 < 120)
    gt = m.expand(depth, size, size)
    return gt.float() + 0.7 * torch.randn(depth, size, size, generator=g), gt


def validation(n=4000):
    for i in range(n):
        yield volume(10_000 + i)
