from torch.utils.data import DataLoader

CONFIG = {"batch": 4, "workers": 512 - 1}


def loaders(train, test):
    return DataLoader(train, batch_size=CONFIG["batch"], num_workers=CONFIG["workers"]), DataLoader(test)
