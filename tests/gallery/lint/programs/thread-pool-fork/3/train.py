from torch.utils.data import DataLoader
from video import Clips


def main():
    return DataLoader(Clips(["a.mp4"]), batch_size=1, num_workers=8)


main()
