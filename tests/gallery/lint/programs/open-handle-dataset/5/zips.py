from zipfile import ZipFile

from torch.utils import data


class ZipImages(data.Dataset):
    def __init__(self, path):
        self.archive = ZipFile(path)
        self.names = self.archive.namelist()

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        return self.archive.read(self.names[i])
