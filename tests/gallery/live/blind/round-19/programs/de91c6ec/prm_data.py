import random

import torch
from torch.utils.data import Dataset

PAD, STEP_TAG, GOOD, BAD = 0, 1, 2, 3
VOCAB = 256


class StepRewardDataset(Dataset):
    """Question followed by reasoning steps; each step ends in a tag that is scored + or -."""

    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(n):
            ids, labels = [], []
            ids += [rng.randrange(10, VOCAB) for _ in range(rng.randrange(8, 24))]
            labels += [-100] * len(ids)
            for _ in range(rng.randrange(2, 7)):
                step = [rng.randrange(10, VOCAB) for _ in range(rng.randrange(4, 12))]
                ids += step + [STEP_TAG]
                labels += [-100] * len(step) + [GOOD if sum(step) % 3 else BAD]
            self.rows.append((ids, labels))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, labels = self.rows[i]
        return {"input_ids": ids, "labels": labels}


def collate(rows):
    width = max(len(r["input_ids"]) for r in rows)
    def pad(key, value):
        return torch.tensor([r[key] + [value] * (width - len(r[key])) for r in rows])
    ids = pad("input_ids", PAD)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": pad("labels", -100)}
