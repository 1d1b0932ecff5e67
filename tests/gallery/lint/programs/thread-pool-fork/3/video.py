import cv2 as cv
from torch.utils import data


def grab(path):
    cap = cv.VideoCapture(path)
    ok, frame = cap.read()
    return cv.cvtColor(frame, cv.COLOR_BGR2RGB)


class Clips(data.Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return grab(self.paths[i])
