import argparse

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from resnet_sd import ResNetSD
from runner import ConsoleLogger, DepthAnneal, SupervisedRunner


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--survival", type=float, default=0.5)
    p.add_argument("--anneal-from", type=int, default=1)
    a = p.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(11)
    model = ResNetSD(survival=a.survival)
    torch.manual_seed(100 + dist.get_rank())
    g = torch.Generator().manual_seed(0)
    x = torch.randn(480, 3, 16, 16, generator=g)
    ds = TensorDataset(x, (x.mean((1, 2, 3)) * 30).long().clamp(-2, 2) + 2)
    dl = DataLoader(ds, 8, sampler=DistributedSampler(ds))
    opt = torch.optim.SGD(model.parameters(), 0.05)
    SupervisedRunner(model, dl, opt, [DepthAnneal(a.anneal_from), ConsoleLogger()]).train(a.epochs)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
