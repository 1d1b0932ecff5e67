import json

from torch.utils.data import DataLoader

with open("config.json") as f:
    cfg = json.load(f)


def build(dataset):
    return DataLoader(dataset, batch_size=cfg["batch_size"], num_workers=cfg["num_workers"], shuffle=True)
