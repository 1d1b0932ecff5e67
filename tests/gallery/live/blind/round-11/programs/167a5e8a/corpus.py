import numpy as np
import torch
from torch.utils.data import Dataset

VOCAB = 400
SOURCES = ("news", "reviews", "forum")


class TaggedSentences(Dataset):
    """Token sequences with one label per token."""

    def __init__(self, n, source, num_labels=6, max_len=48, seed=0):
        rng = np.random.default_rng(seed + SOURCES.index(source) * 101)
        self.rows = []
        for _ in range(n):
            length = int(rng.integers(16, max_len))
            ids = rng.integers(5, VOCAB, size=length)
            labels = ids % num_labels
            if source == "forum":
                labels = (ids // 7 + 3) % num_labels
            self.rows.append((ids, labels))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, labels = self.rows[i]
        return {"input_ids": ids, "labels": labels}


def collate(features):
    width = max(len(f["input_ids"]) for f in features)
    ids = torch.zeros(len(features), width, dtype=torch.long)
    mask = torch.zeros(len(features), width, dtype=torch.long)
    labels = torch.full((len(features), width), -100, dtype=torch.long)
    for i, f in enumerate(features):
        n = len(f["input_ids"])
        ids[i, :n] = torch.as_tensor(f["input_ids"])
        mask[i, :n] = 1
        labels[i, :n] = torch.as_tensor(f["labels"])
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}
