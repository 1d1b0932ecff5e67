import argparse

import torch
from torch.utils.data import DataLoader


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=256)
    args = parser.parse_args()
    loader = DataLoader(torch.utils.data.TensorDataset(torch.rand(1000, 8)), batch_size=args.batch_size, shuffle=True)
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for (x,) in loader:
        similarity = model(x) @ x.T
        labels = torch.arange(args.batch_size)
        loss = torch.nn.functional.cross_entropy(similarity, labels)
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
