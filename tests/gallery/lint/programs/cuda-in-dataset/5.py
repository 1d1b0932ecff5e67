import torch
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    device = "cuda"

    def __len__(self):
        return 100

    def __getitem__(self, index):
        return torch.randn(3, device=self.device)


if __name__ == "__main__":
    args = {"num_workers": 2, "batch_size": 4}
    DataLoader(Noise(), **args)
