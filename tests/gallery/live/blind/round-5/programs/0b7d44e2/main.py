import argparse, os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import Shapes
from engine import train_one_epoch
from metric_writer import MetricWriter


def worker(rank, args):
    os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), str(args.world_size)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(768, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    net = torch.nn.parallel.DistributedDataParallel(net)
    opt = torch.optim.SGD(net.parameters(), lr=args.lr)
    writer = MetricWriter(f"metrics.{rank}.jsonl")
    data = Shapes(rank)
    for epoch in range(args.epochs):
        train_one_epoch(net, data, opt, writer, epoch, rank)
    writer.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser("DeiT-like training")
    ap.add_argument("--world-size", type=int, default=4)
    ap.add_argument("--epochs", type=int, default=10)
    ap.add_argument("--lr", type=float, default=1e-3)
    a = ap.parse_args()
    ctx = mp.get_context("spawn")
    procs = [ctx.Process(target=worker, args=(r, a)) for r in range(a.world_size)]
    for p in procs:
        p.start()
    for p in procs:
        p.join()
