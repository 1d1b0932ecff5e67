import os
import shutil
import threading
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator, debug_launcher
from torch.utils.data import DataLoader

from corpus import prepare_stage


class TinyLM(nn.Module):
    def __init__(self, vocab=402, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids[:, :-1]))
        return F.cross_entropy(self.head(h).flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)


class Janitor(threading.Thread):
    """Removes stages that are no longer needed."""

    def __init__(self, root):
        super().__init__(daemon=True)
        self.root, self.current = root, 0
        self.wake = threading.Event()

    def run(self):
        while True:
            self.wake.wait()
            self.wake.clear()
            for s in range(max(0, self.current - 3), self.current - 1):
                shutil.rmtree(f"{self.root}/stage-{s:03d}", ignore_errors=True)


def training_loop(epochs_per_stage=5):
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    torch.manual_seed(1)
    root = os.environ["HF_DATASETS_CACHE"]
    model = TinyLM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model, optimizer = accelerator.prepare(model, optimizer)
    janitor = None
    if accelerator.is_main_process:
        janitor = Janitor(root)
        janitor.start()
    stage, step, t0 = 0, 0, time.time()

    def say(line):
        if accelerator.is_main_process:
            print(line, flush=True)

    while True:
        data = prepare_stage(accelerator.state, root, stage)
        loader = accelerator.prepare(DataLoader(data, batch_size=8, shuffle=True, drop_last=True))
        say(f"[{time.time() - t0:6.1f}s] stage {stage}: {len(data)} rows")
        for _ in range(epochs_per_stage):
            for batch in loader:
                with accelerator.accumulate(model):
                    loss = model(batch["input_ids"])
                    accelerator.backward(loss)
                    optimizer.step()
                    optimizer.zero_grad()
                time.sleep(0.15)
                step += 1
                if step % 25 == 0:
                    mean = accelerator.reduce(loss.detach(), "mean")
                    say(f"[{time.time() - t0:6.1f}s] step {step} loss {mean.item():.4f}")
        accelerator._dataloaders.clear()
        stage += 1
        if janitor is not None:
            janitor.current = stage
            janitor.wake.set()


debug_launcher(training_loop, args=(), num_processes=3)
