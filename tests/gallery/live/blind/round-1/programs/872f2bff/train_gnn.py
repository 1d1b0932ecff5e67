import argparse
import subprocess

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from monitors import CheckpointWatcher, Deadline, MetricSink, ResourceMonitor, queue_logging


class GraphConv(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.own, self.nbr = nn.Linear(d_in, d_out), nn.Linear(d_in, d_out)

    def forward(self, x, src, dst):
        agg = torch.zeros_like(x).index_add_(0, dst, x[src])
        deg = torch.zeros(len(x), 1).index_add_(0, dst, torch.ones(len(dst), 1)).clamp_(min=1)
        return F.relu(self.own(x) + self.nbr(agg / deg))


class GNN(nn.Module):
    def __init__(self, dim=64, classes=5):
        super().__init__()
        self.c1, self.c2 = GraphConv(dim, dim), GraphConv(dim, dim)
        self.out = nn.Linear(dim, classes)

    def forward(self, x, src, dst):
        return self.out(self.c2(self.c1(x, src, dst), src, dst))


def subgraph(gen, n=800, e=4000):
    x = torch.randn(n, 64, generator=gen)
    return x, torch.randint(0, n, (e,), generator=gen), torch.randint(0, n, (e,), generator=gen), x[:, :5].argmax(-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100000)
    ap.add_argument("--hours", type=float, default=12.0)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    listener = queue_logging(rank)
    monitor = ResourceMonitor(f"usage.{rank}.jsonl", every=5.0)
    monitor.start()
    sink = MetricSink()
    sink.start()
    deadline = Deadline(args.hours)
    deadline.start()
    vm = None
    if rank == 0:
        CheckpointWatcher("graphs").start()
        vm = subprocess.Popen(["sleep", "86400"])  # keeps the VPN lease of the reservation

    torch.manual_seed(0)
    model = DDP(GNN())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    gen = torch.Generator().manual_seed(rank)
    for step in range(1, args.steps + 1):
        x, src, dst, y = subgraph(gen)
        loss = F.cross_entropy(model(x, src, dst), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 50 == 0:
            sink.inbox.put({"step": step, "loss": round(loss.item(), 4)})
        if deadline.near.is_set():
            break
    sink.inbox.put(None)
    monitor.stopping.set()
    if vm:
        vm.terminate()
    listener.stop()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
