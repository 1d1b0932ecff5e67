import cv2
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return cv2.resize(cv2.imread(self.paths[i]), (64, 64))


DataLoader(Images(["a.png"]), num_workers=4)
