import csv

from torch.utils.data import DataLoader, Dataset


def read(path):
    with open(path) as f:
        return [row for row in csv.DictReader(f)]


class Table(Dataset):
    def __init__(self, path):
        self.rows = read(path)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def main(workers: int = 6):
    return DataLoader(Table("t.csv"), num_workers=workers)
