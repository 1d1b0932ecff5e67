import argparse
import tempfile
import time

import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, set_seed
from torch.utils.data import DataLoader

from download import fetch
from scans import ScanFolder, keep_scans, to_batch


class Net(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(784, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.body(x))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=60)
    ap.add_argument("--batch-size", type=int, default=8)
    args = ap.parse_args()
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    set_seed(3)

    where = [None]
    if accelerator.is_main_process:
        where[0] = tempfile.mkdtemp(prefix="scans-")
        fetch(where[0])
    broadcast_object_list(where)

    data = ScanFolder(where[0])
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=True, num_workers=1, collate_fn=keep_scans)
    model = Net()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, opt, loader = accelerator.prepare(model, opt, loader)
    accelerator.print(f"{len(data)} scans, {len(loader)} steps per epoch and process")

    start = time.time()
    for epoch in range(args.epochs):
        for step, (scans, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(to_batch(scans)), y)
            accelerator.backward(loss)
            opt.step()
            opt.zero_grad()
            if step % 10 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.4f} {time.time() - start:.1f}s")
        accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
