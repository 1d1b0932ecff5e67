"""A label of the third batch is one more than there are classes."""

import torch
from torch import nn


def main():
    model = nn.Linear(32, 10).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(10):
        labels = torch.randint(0, 10 + (step == 2), (4096,)).cuda()
        loss = nn.functional.cross_entropy(model(torch.randn(4096, 32, device="cuda")), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
