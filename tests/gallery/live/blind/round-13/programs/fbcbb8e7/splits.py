import torch


def split_batches(split, rank, count, batch):
    """Renders one split: targets are smoothed fields, inputs the fields with noise."""
    gen = torch.Generator().manual_seed(1000 * split + rank)
    for _ in range(count):
        field = torch.randn(batch, 1, 96, 96, generator=gen)
        smooth = torch.nn.functional.avg_pool2d(field, 5, stride=1, padding=2)
        noisy = smooth.add(torch.randn(batch, 1, 96, 96, generator=gen), alpha=0.1)
        yield noisy, smooth
