import torch
from torch.utils.data import DataLoader

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def collate(rows):
    x = torch.stack([r[0] for r in rows])
    return x.to(device)


def main(ds):
    return DataLoader(ds, batch_size=4, collate_fn=collate, num_workers=4)
