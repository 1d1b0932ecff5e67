import argparse
import time
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs, debug_launcher
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader

from corpus import featurize, make_corpus
from features import N_BANDS, log_filterbank


class Classifier(nn.Module):
    def __init__(self, n_classes=8, width=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(N_BANDS, width), nn.GELU(), nn.Linear(width, n_classes))

    def forward(self, x):
        return self.body(x)


def collate(rows):
    return (
        torch.tensor([r["feats"] for r in rows]),
        torch.tensor([r["label"] for r in rows]),
    )


def train_round(accelerator, model, optimizer, loader, round_idx, args):
    model.train()
    for step, (feats, labels) in enumerate(loader):
        logits = model(feats)
        loss = nn.functional.cross_entropy(logits, labels)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(args.step_time)
        if step % 4 == 0:
            mean = accelerator.reduce(loss.detach(), reduction="mean")
            accelerator.print(f"round {round_idx} step {step} loss {mean.item():.4f}", flush=True)


@torch.no_grad()
def probe_noise_robustness(model, waves):
    noisy = waves + 0.1 * torch.randn_like(waves)
    return model(log_filterbank(noisy).mean(dim=1)).softmax(-1).max(-1).values.mean()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=200)
    p.add_argument("--num_proc", type=int, default=2)
    p.add_argument("--step_time", type=float, default=0.25)
    args = p.parse_args()

    accelerator = Accelerator(
        cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(minutes=40))]
    )
    set_seed(7)
    corpus = make_corpus()
    held_out = torch.tensor(corpus[:16]["wave"])
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model, optimizer = accelerator.prepare(model, optimizer)

    for round_idx in range(args.rounds):
        with accelerator.main_process_first():
            train_set = featurize(corpus, round_idx, args.num_proc)
        loader = accelerator.prepare(
            DataLoader(train_set, batch_size=4, shuffle=True, collate_fn=collate)
        )
        train_round(accelerator, model, optimizer, loader, round_idx, args)
        conf = probe_noise_robustness(model, held_out)
        accelerator.print(f"round {round_idx} done, confidence {conf:.3f}", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    debug_launcher(main, num_processes=2)
