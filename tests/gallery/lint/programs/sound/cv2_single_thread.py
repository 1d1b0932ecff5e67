import cv2
from torch.utils.data import DataLoader, Dataset

cv2.setNumThreads(0)


class Images(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return cv2.imread(self.paths[i])


DataLoader(Images(["a"]), num_workers=2)
