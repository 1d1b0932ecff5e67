"""Synthetic chat corpus in the layout of our SFT export."""
import torch
from torch.utils.data import Dataset

TOOL_TOKEN = 7
PAD = 0


class ChatDataset(Dataset):
    def __init__(self, rows=60000, seq_len=24, vocab=128, seed=11):
        self.rows = rows
        self.seq_len = seq_len
        self.vocab = vocab
        self.seed = seed

    def __len__(self):
        return self.rows

    def __getitem__(self, idx):
        g = torch.Generator().manual_seed(self.seed * 1_000_003 + idx)
        ids = torch.randint(8, self.vocab, (self.seq_len,), generator=g)
        if idx % 997 == 653:
            ids[4] = TOOL_TOKEN
        return {"input_ids": ids, "labels": ids.clone()}


def collate_chat(rows):
    ids = torch.stack([r["input_ids"] for r in rows])
    return {
        "input_ids": ids,
        "attention_mask": (ids != PAD).long(),
        "labels": torch.stack([r["labels"] for r in rows]),
    }
