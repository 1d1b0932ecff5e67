from torch.utils.data import DataLoader


def main(train_set, val_set, test_set):
    train = DataLoader(train_set, batch_size=32, num_workers=32, persistent_workers=True)
    val = DataLoader(val_set, batch_size=32, num_workers=24, persistent_workers=True)
    test = DataLoader(test_set, batch_size=32, num_workers=16, persistent_workers=True)
    for epoch in range(90):
        for loader in (train, val, test):
            for _batch in loader:
                pass


if __name__ == "__main__":
    main([], [], [])
