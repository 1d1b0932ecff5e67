"""Loaders that take turns: the workers of one are gone before those of the next start."""

from torch.utils.data import DataLoader


def main(train_set, val_set, test_set):
    train = DataLoader(train_set, batch_size=32, num_workers=32)
    val = DataLoader(val_set, batch_size=32, num_workers=32)
    test = DataLoader(test_set, batch_size=32, num_workers=32)
    for epoch in range(90):
        for _batch in train:
            pass
        for _batch in val:
            pass
    for _batch in test:
        pass


if __name__ == "__main__":
    main([], [], [])
