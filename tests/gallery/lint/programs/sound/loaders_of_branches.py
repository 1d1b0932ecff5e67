"""One of three loaders is made, and a helper that nothing runs makes more."""

import argparse

from torch.utils.data import DataLoader


def spare(rows):
    return DataLoader(rows, num_workers=60, persistent_workers=True)


def main(name, rows):
    if name == "images":
        loader = DataLoader(rows, batch_size=8, num_workers=40, persistent_workers=True)
    elif name == "text":
        loader = DataLoader(rows, batch_size=8, num_workers=32, persistent_workers=True)
    else:
        loader = DataLoader(rows, batch_size=8, num_workers=24, persistent_workers=True)
    for _batch in loader:
        pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="images")
    main(parser.parse_args().name, [])
