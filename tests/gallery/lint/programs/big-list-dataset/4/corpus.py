from pathlib import Path

from torch.utils.data import Dataset


class Base(Dataset):
    def __len__(self):
        return len(self.texts)


class Corpus(Base):
    def __init__(self, path):
        self.texts = [t.strip() for t in Path(path).open()]

    def __getitem__(self, i):
        return self.texts[i]
