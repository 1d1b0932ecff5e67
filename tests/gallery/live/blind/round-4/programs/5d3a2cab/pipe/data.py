import torch


def videos(batch_size, epoch, clips=4300):
    g = torch.Generator().manual_seed(epoch)
    left = clips
    while left > 0:
        n = min(batch_size, left)
        left -= n
        x = torch.randn(n, 24, 48, generator=g)
        yield x, (x.mean(-1) * 8).clamp(-7, 7).long() + 8
