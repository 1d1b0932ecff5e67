import argparse
import os

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader

from shards import LocalShards


class Clip(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.image = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, width), nn.ReLU(), nn.Linear(width, width))
        self.text = nn.EmbeddingBag(300, width)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, image, text):
        a = nn.functional.normalize(self.image(image), dim=-1)
        b = nn.functional.normalize(self.text(text), dim=-1)
        return self.scale.exp() * a @ b.t()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--epochs", type=int, default=40)
    args = parser.parse_args()
    accelerator = Accelerator(cpu=True)
    data = LocalShards(args.data, int(os.environ["LOCAL_RANK"]), int(os.environ.get("LOCAL_WORLD_SIZE", 2)))
    loader = DataLoader(data, batch_size=16)
    model = Clip()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer = accelerator.prepare(model, optimizer)
    accelerator.print(f"{accelerator.num_processes} processes, {len(data.paths)} shards each")
    for epoch in range(args.epochs):
        total = 0.0
        for step, (image, text) in enumerate(loader):
            logits = model(image, text)
            target = torch.arange(len(image))
            loss = (nn.functional.cross_entropy(logits, target) + nn.functional.cross_entropy(logits.t(), target)) / 2
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            total += loss.item()
            if step % 8 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.3f}", flush=True)
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            torch.save(accelerator.unwrap_model(model).state_dict(), "clip.pt")


if __name__ == "__main__":
    main()
