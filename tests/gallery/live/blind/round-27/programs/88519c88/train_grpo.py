import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from engine import RolloutEngine, TPBlock

DIM = 32


def response_lengths(step, dp_rank):
    gen = torch.Generator().manual_seed(1000 * step + dp_rank)
    mean = 24 + 2 * (step // 4)
    return [[mean + int(n) for n in torch.randint(0, 6, (3,), generator=gen)] for _ in range(3)]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--tp", type=int, default=2)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world // args.tp, args.tp), mesh_dim_names=("dp", "tp"))
    tp_group, dp_rank = mesh.get_group("tp"), mesh.get_local_rank("dp")
    torch.manual_seed(mesh.get_local_rank("tp"))
    model = nn.Sequential(TPBlock(DIM, tp_group), TPBlock(DIM, tp_group))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    metrics_buffer = 12 * 1024 if rank == world - 1 else 4 * 1024
    engine = RolloutEngine(model, DIM, tp_group, metrics_buffer)
    for step in range(100000):
        started = time.time()
        hidden = engine.generate(response_lengths(step, dp_rank))
        reward = hidden.mean(-1)
        adv = (reward - reward.mean()) / (reward.std() + 1e-6)
        loss = -(adv[:, None] * model(hidden)).mean()
        opt.zero_grad()
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad, group=mesh.get_group("dp"))
        opt.step()
        stats = torch.tensor([reward.mean().item(), time.time() - started])
        dist.all_reduce(stats)
        time.sleep(0.1)
        if rank == 0 and step % 5 == 0:
            print(f"step {step} reward {stats[0].item() / world:.3f} "
                  f"time {stats[1].item() / world:.2f}s", flush=True)


if __name__ == "__main__":
    main()
