import argparse
import time

import torch
import torch.distributed as dist

from experts import ExpertMix
from hubcache import ModelStore


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--store", default="model_store")
    p.add_argument("--stages", type=int, default=4)
    p.add_argument("--steps-per-stage", type=int, default=40)
    p.add_argument("--dim", type=int, default=48)
    a = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = ExpertMix(a.dim, a.stages)
    ddp = torch.nn.parallel.DistributedDataParallel(net)
    opt = torch.optim.SGD(ddp.parameters(), 0.05)
    store = ModelStore(a.store, a.dim)
    for stage in range(a.stages):
        if rank == 0:
            net.load_expert(stage, store.snapshot(f"Mini/expert-{stage:02d}"))
        dist.broadcast(net.experts.data, 0)
        for it in range(a.steps_per_stage):
            x = torch.randn(32, a.dim)
            loss = (ddp(x) - x[:, 0]).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.1)
            if rank == 0 and it % 10 == 0:
                print(f"stage {stage} it {it} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
