import sqlite3

from torch.utils.data import DataLoader, Dataset


class Db(Dataset):
    def __init__(self, path):
        self._connect(path)

    def _connect(self, path):
        self.conn = sqlite3.connect(path)

    def __len__(self):
        return self.conn.execute("select count(*) from t").fetchone()[0]

    def __getitem__(self, i):
        return self.conn.execute("select x from t where id=?", (i,)).fetchone()[0]


DataLoader(Db("x.db"), num_workers=2)
