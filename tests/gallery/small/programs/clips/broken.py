"""A small classifier of clips: train, then validate and test after each epoch."""

import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

KEYS = ("frames", "audio", "text", "label")


class Clips(Dataset):
    def __init__(self, rows, seed):
        self.rows, self.seed = rows, seed

    def __len__(self):
        return self.rows

    def __getitem__(self, row):
        made = torch.Generator().manual_seed(self.seed * 1_000_003 + row)
        label = row % 4
        frames = torch.randn(64, generator=made) + label
        return {"frames": frames, "audio": torch.randn(16, generator=made), "text": torch.randint(0, 100, (8,), generator=made), "label": torch.tensor(label)}


def loader(rows, seed, workers, shuffle=False):
    data = Clips(rows, seed)
    sampler = DistributedSampler(data, shuffle=shuffle)
    return DataLoader(data, batch_size=4, sampler=sampler, num_workers=workers, persistent_workers=True)


@torch.no_grad()
def evaluate(model, batches):
    """Accuracy and the five clips that the model is least sure of."""
    seen = []
    for batch in batches:
        batch["score"] = model(batch["frames"]).log_softmax(-1)
        seen.append(batch)
    hits = sum((batch["score"].argmax(-1) == batch["label"]).sum().item() for batch in seen)
    worst = sorted(zip(torch.cat([batch["score"].amax(-1) for batch in seen]).tolist(), torch.cat([batch["text"] for batch in seen]).tolist()))[:5]
    return hits / sum(len(batch["label"]) for batch in seen), worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    train = loader(args.rows, 1, args.workers, shuffle=True)
    validation = loader(max(8, args.rows // 4), 2, args.workers)
    test = loader(max(8, args.rows // 4), 3, args.workers)
    for epoch in range(args.epochs):
        train.sampler.set_epoch(epoch)
        for batch in train:
            loss = torch.nn.functional.cross_entropy(model(batch["frames"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for name, batches in (("validation", validation), ("test", test)):
            accuracy, _ = evaluate(model.module, batches)
            if dist.get_rank() == 0:
                print(f"epoch {epoch} {name} accuracy {accuracy:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
