import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.logging import get_logger
from accelerate.utils import set_seed
from torch.utils.data import DataLoader

from audio import FullClips, ShortClips

logger = get_logger(__name__)
DECODE_THREADS = 2
EVAL_EVERY = 100


class KeywordNet(nn.Module):
    def __init__(self, width=48, classes=8):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(64, width, 5, padding=2), nn.ReLU(),
            nn.Conv1d(width, width, 5, padding=2), nn.ReLU(),
        )
        self.out = nn.Linear(width, classes)

    def forward(self, x):
        return self.out(self.net(x).mean(-1))


def decoder_init(worker_id):
    torch.set_num_threads(DECODE_THREADS)


def evaluate(model, loader):
    model.eval()
    hits = seen = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(-1) == y).sum().item()
            seen += len(y)
    model.train()
    return hits / seen


def main():
    accelerator = Accelerator(cpu=True)
    set_seed(7)
    train_set = ShortClips(320, seed=1000)
    eval_set = FullClips(64, seed=90000)
    train_loader = DataLoader(train_set, batch_size=16, shuffle=True, drop_last=True)
    eval_loader = DataLoader(eval_set, batch_size=8, num_workers=2, worker_init_fn=decoder_init)

    model = KeywordNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model, optimizer, train_loader = accelerator.prepare(model, optimizer, train_loader)
    accelerator.print(f"{accelerator.num_processes} processes, {len(train_loader)} batches per epoch")

    step, mark = 0, time.time()
    for epoch in range(400):
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step % 20 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.4f} {time.time() - mark:.2f}s", flush=True)
                mark = time.time()
            if step % EVAL_EVERY == 0:
                if accelerator.is_main_process:
                    acc = evaluate(accelerator.unwrap_model(model), eval_loader)
                    print(f"step {step} accuracy {acc:.3f}", flush=True)
                accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
