import lmdb
import torch.utils.data as D


class Lmdb(D.Dataset):
    def __init__(self, root):
        super().__init__()
        env = lmdb.open(root, readonly=True)
        self.txn = env.begin()

    def __len__(self):
        return self.txn.stat()["entries"]

    def __getitem__(self, i):
        return self.txn.get(str(i).encode())


def get(root, n):
    return D.DataLoader(Lmdb(root), num_workers=n)
