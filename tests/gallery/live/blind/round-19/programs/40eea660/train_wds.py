import argparse
import glob
import os
import threading
import time

import numpy as np
import torch
import torch.distributed as dist
import webdataset as wds
from accelerate import Accelerator
from torch import nn

from make_tars import CLASSES, MELS, write

FRAMES = 128


def crop(mel):
    n = len(mel)
    if n < FRAMES:
        mel = np.pad(mel, ((0, FRAMES - n), (0, 0)))
    start = np.random.randint(0, max(1, n - FRAMES + 1))
    return torch.from_numpy(mel[start:start + FRAMES].copy())


def pipeline(urls, batch_size, steps, train):
    urls = [f"pipe:cat {u}" for u in urls]
    if train:
        data = wds.WebDataset(urls, resampled=True, nodesplitter=wds.split_by_node, shardshuffle=False).shuffle(200)
    else:
        data = wds.WebDataset(urls, nodesplitter=wds.split_by_node, shardshuffle=False, empty_check=False).repeat()
    data = data.decode().to_tuple("npy", "cls").map_tuple(crop, int).batched(batch_size, partial=False)
    workers = 1 if train else 0
    return wds.WebLoader(data, batch_size=None, num_workers=workers).with_epoch(steps)


class SpeechNet(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(MELS, dim, 5, 2, 2), nn.ReLU(), nn.Conv1d(dim, dim, 5, 2, 2), nn.ReLU())
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, CLASSES)

    def forward(self, mel):
        h, _ = self.gru(self.conv(mel.transpose(1, 2)).transpose(1, 2))
        return self.out(h.mean(1))


class Heartbeat(threading.Thread):
    """Touches a file so that the cluster's watchdog sees a living job."""

    def __init__(self, path):
        super().__init__(name="heartbeat", daemon=True)
        self.path = path

    def run(self):
        while True:
            with open(self.path, "w") as f:
                f.write(str(time.time()))
            time.sleep(5)


@torch.no_grad()
def evaluate(model, loader, accelerator):
    model.eval()
    hits = torch.zeros(2)
    for mel, label in loader:
        hits += torch.tensor([(model(mel).argmax(1) == label).sum().item(), len(label)])
    hits = accelerator.reduce(hits)
    model.train()
    return (hits[0] / hits[1]).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tars", required=True)
    p.add_argument("--epochs", type=int, default=500)
    p.add_argument("--steps-per-epoch", type=int, default=100)
    p.add_argument("--eval-steps", type=int, default=40)
    args = p.parse_args()

    accelerator = Accelerator(cpu=True)
    torch.set_num_threads(1)
    if accelerator.is_main_process:
        write(args.tars, "train", 9, 0)
        write(args.tars, "val", 6, 1)
    accelerator.wait_for_everyone()
    Heartbeat(os.path.join(args.tars, f"alive-{accelerator.process_index}")).start()

    train = pipeline(sorted(glob.glob(args.tars + "/train-*.tar")), 16, args.steps_per_epoch, True)
    val = pipeline(sorted(glob.glob(args.tars + "/val-*.tar")), 16, args.eval_steps, False)
    torch.manual_seed(0)
    model = SpeechNet()
    model, opt = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), 5e-4))
    for epoch in range(args.epochs):
        t0 = time.time()
        for step, (mel, label) in enumerate(train, 1):
            loss = nn.functional.cross_entropy(model(mel), label, label_smoothing=0.1)
            opt.zero_grad()
            accelerator.backward(loss)
            opt.step()
            if step % 20 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.4f} {(time.time() - t0) / step * 1e3:.0f} ms/step", flush=True)
        acc = evaluate(model, val, accelerator)
        accelerator.print(f"epoch {epoch} val acc {acc:.4f}", flush=True)
        if accelerator.is_main_process:
            torch.save(accelerator.unwrap_model(model).state_dict(), args.tars + "/last.pt")
        accelerator.wait_for_everyone()


if __name__ == "__main__":
    main()
