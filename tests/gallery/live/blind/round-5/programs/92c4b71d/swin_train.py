import argparse, time
import torch, torch.nn as nn, torch.distributed as dist
from torch.utils.data import DataLoader
from metrics import Dice
from volumes import CacheDs, partition

parser = argparse.ArgumentParser()
parser.add_argument("--train-cases", type=int, default=30)
parser.add_argument("--val-cases", type=int, default=10)
parser.add_argument("--val-every", type=int, default=2)


def validate(net, loader, dice, rank, epoch):
    net.eval()
    dice.reset()
    best = 0.0
    with torch.no_grad():
        for i, (x, y) in enumerate(loader):
            dice((net(x).sigmoid() > 0.5).float(), y)
            cur = dice.aggregate().item()
            time.sleep(0.1)
            if rank == 0:
                print(f"  val {epoch} [{i + 1}/{len(loader)}] dice {cur:.4f}", flush=True)
            best = max(best, cur)
    net.train()
    return best


def main():
    a = parser.parse_args()
    dist.init_process_group(backend="gloo", init_method="env://")
    rank, world = dist.get_rank(), dist.get_world_size()
    metric_pg = dist.new_group(backend="gloo")
    tr = partition(CacheDs(a.train_cases), world, rank, even=True)
    va = partition(CacheDs(a.val_cases, seed=1), world, rank, even=False)
    tl = DataLoader(tr, batch_size=2, shuffle=True)
    vl = DataLoader(va, batch_size=1)
    net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1)))
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    dice = Dice(metric_pg)
    epoch = 0
    while True:
        epoch += 1
        for x, y in tl:
            loss = nn.functional.binary_cross_entropy_with_logits(net(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
            time.sleep(0.15)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
        if epoch % a.val_every == 0:
            validate(net.module, vl, dice, rank, epoch)


main()
