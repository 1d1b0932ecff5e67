import os
import random

import torch
from torch.utils.data import Dataset


def build(path, n=30000, length=32):
    rng = random.Random(11)
    with open(path + ".tmp", "w") as f:
        for _ in range(n):
            label = rng.randrange(3)
            ids = [rng.randrange(label * 250, label * 250 + 500) for _ in range(length)]
            f.write(f"{label}\t{' '.join(map(str, ids))}\n")
    os.replace(path + ".tmp", path)


class Corpus(Dataset):
    def __init__(self, work_dir, split, held_out=600):
        path = os.path.join(work_dir, "corpus.tsv")
        if not os.path.exists(path):
            build(path)
        ids, labels = [], []
        with open(path) as f:
            for line in f:
                label, text = line.rstrip("\n").split("\t")
                labels.append(int(label))
                ids.append([int(t) for t in text.split()])
        part = slice(0, -held_out) if split == "train" else slice(-held_out, None)
        self.ids, self.labels = torch.tensor(ids[part]), torch.tensor(labels[part])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.labels[i]}
