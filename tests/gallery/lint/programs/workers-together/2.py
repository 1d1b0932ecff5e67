import argparse

from torch.utils import data


def make(rows, options, workers):
    return data.DataLoader(rows, batch_size=options.batch, num_workers=workers, persistent_workers=workers > 0)


def run(options, splits):
    train = make(splits["train"], options, 40)
    valid = make(splits["valid"], options, 8 * 4)
    return train, valid


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=8)
    run(parser.parse_args(), {"train": [], "valid": []})
