from torch.utils.data import Dataset


class Text(Dataset):
    def __init__(self, path, offsets):
        self.offsets = offsets
        self.fh = open(path, "rb")

    def __len__(self):
        return len(self.offsets)

    def __getitem__(self, i):
        self.fh.seek(self.offsets[i])
        return self.fh.readline()
