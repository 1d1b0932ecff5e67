import torch
from torch.utils import data

BATCH = 32


class Contrast(torch.nn.Module):
    def forward(self, first, second):
        pairs = torch.cat([first, second]).view(2, BATCH, -1)
        mask = torch.eye(BATCH, dtype=torch.bool)
        return (pairs[0] @ pairs[1].T)[mask].mean()


def train(rows, model, optimizer):
    loader = data.DataLoader(rows, BATCH, True)
    contrast = Contrast()
    for epoch in range(10):
        for first, second in loader:
            loss = contrast(model(first), model(second))
            loss.backward()
            optimizer.step()
