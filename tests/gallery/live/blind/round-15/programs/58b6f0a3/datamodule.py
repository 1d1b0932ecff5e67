import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


def make_scenes(n, people=4, slots=16, joints=12, seed=0):
    g = torch.Generator().manual_seed(seed)
    group = torch.randint(0, people, (n, slots), generator=g)
    centers = torch.randn(n, people, joints * 2, generator=g)
    points = torch.gather(centers, 1, group[..., None].expand(-1, -1, joints * 2))
    points = points + 0.3 * torch.randn(points.shape, generator=g)
    visible = (points.abs().mean(-1) > 0.8).float()
    return TensorDataset(points, group, visible)


class SceneData(L.LightningDataModule):
    def __init__(self, batch_size=16):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        self.train_set = make_scenes(1440, seed=1)
        self.val_set = make_scenes(288, seed=2)

    def train_dataloader(self):
        return DataLoader(self.train_set, self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, self.batch_size)
