import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from accelerate import PartialState, debug_launcher
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from ckpt import Checkpointer


def build_model(dim=64, depth=3):
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
              for _ in range(depth)]
    return nn.Sequential(*blocks, nn.Linear(dim, 10))


def evaluate(model, rounds):
    model.eval()
    hits = torch.zeros(1)
    with torch.no_grad():
        for i in range(rounds):
            x = torch.randn(32, 64, generator=torch.Generator().manual_seed(i))
            hits += (model(x).argmax(-1) == 0).float().mean()
            time.sleep(0.15)
    dist.all_reduce(hits)
    model.train()
    return hits.item() / rounds / dist.get_world_size()


def main():
    state = PartialState(cpu=True)
    mesh = init_device_mesh("cpu", (state.num_processes,))
    model = build_model()
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ckpt = Checkpointer(model, opt)
    for step in range(1, 10**6):
        x = torch.randn(16, 64)
        y = torch.randint(0, 10, (16,))
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0).full_tensor()
        opt.step()
        opt.zero_grad()
        time.sleep(0.1)
        if state.is_main_process and step % 10 == 0:
            print(f"step {step} loss {loss.item():.3f} norm {norm.item():.3f}", flush=True)
        if step % 100 == 0:
            ckpt.save(step)
        if step % 90 == 0:
            acc = evaluate(model, 70)
            if state.is_main_process:
                print(f"step {step} acc {acc:.3f}", flush=True)


if __name__ == "__main__":
    debug_launcher(main, num_processes=2)
