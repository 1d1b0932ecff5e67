from itertools import cycle

import lightning as L
from torch.utils.data import DataLoader

OPTIONS = {"num_workers": 36, "pin_memory": True, "persistent_workers": True}


class Data(L.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(self.rows, batch_size=8, shuffle=True, **OPTIONS)

    def val_dataloader(self):
        return DataLoader(self.held_out, batch_size=8, **OPTIONS)


if __name__ == "__main__":
    L.Trainer().fit(None, Data())
    print(cycle)
