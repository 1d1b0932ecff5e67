import torch
import torch.utils.data as tud

DEVICE = "cuda"


class Images(tud.Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def load(self, p):
        return torch.load(p).to(DEVICE)

    def __getitem__(self, i):
        return self.load(self.paths[i])


def build(paths, workers=4):
    return tud.DataLoader(Images(paths), batch_size=8, num_workers=workers)
