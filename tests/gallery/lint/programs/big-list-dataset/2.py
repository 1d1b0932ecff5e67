import json

import torch.utils.data as data


class Captions(data.Dataset):
    def __init__(self, path):
        self.samples = json.load(open(path))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]["caption"]


def build():
    return data.DataLoader(Captions("c.json"), batch_size=8, num_workers=8)
