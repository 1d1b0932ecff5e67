"""A data set that keeps its samples on the GPU, read by workers that are forked."""

import torch
from torch.utils.data import DataLoader, Dataset


class Features(Dataset):
    def __init__(self):
        self.rows = torch.randn(1024, 32, device="cuda")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index] * 2


def main():
    torch.cuda.set_device(0)
    for batch in DataLoader(
        Features(), batch_size=16, num_workers=2, multiprocessing_context="fork"
    ):
        print(batch.mean().item(), flush=True)


if __name__ == "__main__":
    main()
