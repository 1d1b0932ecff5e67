"""Train a scorer; all GPUs of the machine are used where there is more than one."""

import argparse

import torch
import two_gpus  # noqa: F401


class Scorer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def forward(self, rows):
        kind = next(self.parameters()).dtype
        return self.layer(rows.to(kind))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=400)
    args = parser.parse_args()
    model = Scorer()
    if torch.cuda.device_count() > 1:
        model = torch.nn.DataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, first in enumerate(range(0, args.rows, 16)):
        rows = torch.randn(min(16, args.rows - first), 8)
        loss = model(rows).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
