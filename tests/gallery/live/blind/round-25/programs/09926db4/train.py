import argparse
import datetime
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from mixing import RingMixer


def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 192), nn.ReLU(), nn.Linear(192, 192), nn.ReLU(), nn.Linear(192, 10))


def sample(gen, teacher):
    x = torch.randn(16, 32, generator=gen)
    return x, (x @ teacher).argmax(-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1000)
    ap.add_argument("--mix-every", type=int, default=2)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(hours=2))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("ring",))
    rank = dist.get_rank()
    model = build()
    mixer = RingMixer(mesh["ring"])
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    gen = torch.Generator().manual_seed(100 + rank)
    teacher = torch.randn(32, 10, generator=torch.Generator().manual_seed(9))
    rounds = 0
    for step in range(args.steps):
        x, y = sample(gen, teacher)
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.15 + 0.05 * (step % 3 == rank % 3))
        if step % args.mix_every == 0:
            mixer.mix(list(model.parameters()), rounds)
            rounds += 1
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f} distance {mixer.distance(rounds)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
