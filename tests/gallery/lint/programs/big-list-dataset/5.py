import pickle

import pytorch_lightning as pl
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, file):
        with open(file, "rb") as f:
            self.pairs = pickle.load(f)

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        return self.pairs[index]


class Module(pl.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(Pairs("p.pkl"), batch_size=4, num_workers=4)
