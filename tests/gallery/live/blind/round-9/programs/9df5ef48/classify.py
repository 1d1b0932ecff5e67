import argparse
import time

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

import ledger
from crops import CropDataset


def build_model(classes=6):
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
        nn.Flatten(), nn.Linear(512, classes),
    )


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--db", required=True)
    p.add_argument("--epochs", type=int, default=300)
    p.add_argument("--batch-size", type=int, default=16)
    args = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    acc = Accelerator(cpu=True)
    if acc.is_main_process:
        ledger.prepare(args.db)
    acc.wait_for_everyone()
    book = ledger.Ledger(args.db, acc.process_index)

    data = CropDataset(4997)
    sampler = DistributedSampler(data, acc.num_processes, acc.process_index, shuffle=True, seed=11)
    loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler)
    model = build_model()
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    model, opt = acc.prepare(model, opt)

    step, t0 = 0, time.time()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        right = total = 0
        for batch in loader:
            logits = model(batch["image"])
            each = F.cross_entropy(logits, batch["label"], reduction="none")
            opt.zero_grad()
            acc.backward(each.mean())
            opt.step()
            step += 1
            right += int((logits.argmax(1) == batch["label"]).sum())
            total += len(batch["label"])
            book.samples(epoch, batch["name"], each.tolist())
            book.scalar(step, "loss", each.mean().item())
            if step % 25 == 0:
                acc.print(f"epoch {epoch} step {step} loss {each.mean().item():.3f} ({(time.time() - t0) / step * 1e3:.0f} ms/step)")
        acc.print(f"epoch {epoch} accuracy {right / total:.3f}")
    book.close()
    acc.wait_for_everyone()
    acc.end_training()


if __name__ == "__main__":
    main()
