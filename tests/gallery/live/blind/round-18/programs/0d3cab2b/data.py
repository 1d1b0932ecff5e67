import torch

TEST_FILES = {"site_a": 900, "site_b": 300, "site_c": 5200}


def make_split(n, seed, dim=64, classes=40):
    g = torch.Generator().manual_seed(seed)
    proto = torch.randn(classes, dim, generator=torch.Generator().manual_seed(1))
    y = torch.randint(0, classes, (n,), generator=g)
    return proto[y] + 0.9 * torch.randn(n, dim, generator=g), y


def test_files_for(rank, world):
    return [name for i, name in enumerate(sorted(TEST_FILES)) if i % world == rank]
