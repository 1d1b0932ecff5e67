from torch.utils.data import DataLoader


def train_loader(rows):
    return DataLoader(rows, batch_size=8, num_workers=40, persistent_workers=True)


def test_loader(rows):
    return DataLoader(rows, batch_size=8, num_workers=40, persistent_workers=True)
