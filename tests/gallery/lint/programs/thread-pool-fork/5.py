from os import environ

import torch.utils.data
from transformers import AutoTokenizer

environ.setdefault("TOKENIZERS_PARALLELISM", "True")


class Data(torch.utils.data.Dataset):
    def __init__(self, rows, name):
        self.rows = rows
        self.tok = AutoTokenizer.from_pretrained(name)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.tok(self.rows[i])


def main(n_workers=2):
    return torch.utils.data.DataLoader(Data(["x"], "bert"), num_workers=n_workers)
