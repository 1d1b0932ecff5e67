import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from meters import MeterBank
from tasks import MixedTaskStream, build_groups, local_tasks


class Trunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())

    def forward(self, x):
        return self.body(x)


def sync_heads(heads, groups):
    for task in sorted(heads):
        for p in heads[task].parameters():
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad, group=groups[task])
            p.grad.div_(dist.get_world_size(groups[task]))


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="env://", timeout=timedelta(minutes=60))
    rank = dist.get_rank()
    groups = build_groups()
    torch.manual_seed(5)
    trunk = DDP(Trunk())
    heads = {task: nn.Linear(32, 2) for task in local_tasks(rank)}
    for task in sorted(heads):
        for p in heads[task].parameters():
            dist.broadcast(p.data, src=min(dist.get_process_group_ranks(groups[task])), group=groups[task])
    params = list(trunk.parameters()) + [p for h in heads.values() for p in h.parameters()]
    optim = torch.optim.SGD(params, lr=0.05, momentum=0.9)
    meters = MeterBank(groups)

    for step, (task, x, y) in enumerate(MixedTaskStream(rank), start=1):
        logits = heads[task](trunk(x))
        loss = F.cross_entropy(logits, y)
        optim.zero_grad()
        loss.backward()
        sync_heads(heads, groups)
        optim.step()
        time.sleep(0.1)
        meters.update(task, loss.item(), (logits.argmax(1) == y).sum().item(), len(y))
        if step % 25 == 0:
            report = meters.compute()
            line = " ".join(f"{t}: {v['loss']:.3f}/{v['acc']:.2f}" for t, v in sorted(report.items()))
            print(f"[{rank}] step {step} {line}", flush=True)
            meters.reset()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
