import argparse

import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from callbacks import MilestoneCheckpoint
from strategy import DDPStrategy
from trainer import Trainer


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=20)
    args = p.parse_args()
    strategy = DDPStrategy()
    torch.manual_seed(7)
    x = torch.randn(640, 24)
    y = x[:, :4] * 0.5 + 0.1 * torch.randn(640, 4)
    train, val = TensorDataset(x[:512], y[:512]), TensorDataset(x[512:], y[512:])
    loader = DataLoader(train, batch_size=8, sampler=DistributedSampler(train))
    val_loader = DataLoader(val, batch_size=32)
    net = torch.nn.Sequential(torch.nn.Linear(24, 64), torch.nn.SiLU(), torch.nn.Linear(64, 4))
    trainer = Trainer(strategy, [MilestoneCheckpoint()], max_epochs=args.epochs)
    trainer.fit(net, loader, val_loader)


if __name__ == "__main__":
    main()
