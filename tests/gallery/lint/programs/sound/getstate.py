from torch.utils.data import DataLoader, Dataset


class Text(Dataset):
    def __init__(self, path, offsets):
        self.path, self.offsets = path, offsets
        self.fh = open(path, "rb")

    def __getstate__(self):
        state = dict(self.__dict__)
        state["fh"] = None
        return state

    def __len__(self):
        return len(self.offsets)

    def __getitem__(self, i):
        if self.fh is None:
            self.fh = open(self.path, "rb")
        self.fh.seek(self.offsets[i])
        return self.fh.readline()


DataLoader(Text("x", [1]), num_workers=4)
