"""A GPU that waits for samples which are prepared one by one in the loop's own process."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        image = torch.rand(3, 64, 64)
        for _ in range(6):
            image = nn.functional.interpolate(image[None], scale_factor=1.0)[0].sort(dim=-1).values
        return image.flatten()


def main():
    model = nn.Linear(3 * 64 * 64, 10).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    began = time.time()
    for step, batch in enumerate(DataLoader(Images(), batch_size=256)):
        loss = model(batch.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f} {time.time() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
