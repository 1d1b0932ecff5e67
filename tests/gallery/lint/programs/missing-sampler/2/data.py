import torchvision
from torch.utils import data


def train_loader(root):
    ds = torchvision.datasets.ImageFolder(root)
    return data.DataLoader(ds, batch_size=32, shuffle=True, drop_last=True)
