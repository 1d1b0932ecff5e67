import argparse

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

from dataset import CrackDataset
from runner import EpochBasedRunner, TinyDetector


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3000)
    p.add_argument("--batch-size", type=int, default=12)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--lr", type=float, default=1e-3)
    args = p.parse_args()

    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    model = TinyDetector()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
    loader = DataLoader(
        CrackDataset(), args.batch_size, shuffle=True, drop_last=True,
        num_workers=args.workers, multiprocessing_context="spawn",
    )
    model, opt, loader, sched = accelerator.prepare(model, opt, loader, sched)
    EpochBasedRunner(accelerator, model, opt, sched, loader, args.epochs, log_interval=4).run()


if __name__ == "__main__":
    main()
