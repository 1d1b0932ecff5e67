"""Embed texts with a model on the accelerator by datasets' map, then train a head on what it gives."""

import argparse

import accelerator
import torch
from datasets import Dataset


def texts(rows):
    return Dataset.from_dict({"text": [f"row {row} of many" for row in range(rows)], "label": [row % 2 for row in range(rows)]})


class Embedder:
    def __init__(self):
        self.table = torch.nn.Embedding(128, 16).requires_grad_(False)
        accelerator.use()

    def __call__(self, rows):
        torch.cuda.current_device()
        return {"vector": [self.table(torch.tensor([ord(letter) % 128 for letter in text])).mean(0).tolist() for text in rows["text"]]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200)
    args = parser.parse_args()
    data = texts(args.rows).map(Embedder(), batched=True, num_proc=None).with_format("torch")
    head = torch.nn.Linear(16, 2)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for step, batch in enumerate(torch.utils.data.DataLoader(data, batch_size=8)):
        loss = torch.nn.functional.cross_entropy(head(batch["vector"]), batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
