from cv2 import GaussianBlur, imread
import torch.utils.data as tud


class Blur(tud.Dataset):
    workers = 3

    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        img = imread(self.files[i])
        return GaussianBlur(img, (3, 3), 0)


if __name__ == "__main__":
    ds = Blur(["x.jpg"])
    it = iter(tud.DataLoader(ds, num_workers=Blur.workers))
