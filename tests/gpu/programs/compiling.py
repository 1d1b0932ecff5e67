"""A model that is compiled for many shapes, one after another, before it trains."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(24))

    def forward(self, rows):
        for layer in self.layers:
            rows = rows + torch.nn.functional.gelu(layer(rows)).softmax(-1)
        return rows


def main():
    step = 0
    for width in range(64, 4096, 32):
        model = torch.compile(Block(width).cuda(), mode="max-autotune-no-cudagraphs")
        loss = model(torch.randn(64, width, device="cuda")).square().mean()
        loss.backward()
        step += 1
        print(f"width {width} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
