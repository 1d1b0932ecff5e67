import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel as DDP

from checkpoint import ShardStore
from data import SITES, TileStream

MAX_STEPS = 30000
SAVE_EVERY = 60
EVAL_EVERY = 120


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(8, o), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, w=16):
        super().__init__()
        self.d1, self.d2, self.d3 = conv(3, w), conv(w, 2 * w), conv(2 * w, 4 * w)
        self.u2, self.u1 = conv(6 * w, 2 * w), conv(3 * w, w)
        self.out = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.d3(F.max_pool2d(b, 2))
        b = self.u2(torch.cat([b, F.interpolate(c, scale_factor=2)], 1))
        return self.out(self.u1(torch.cat([a, F.interpolate(b, scale_factor=2)], 1)))


@torch.no_grad()
def evaluate(model, stream, step):
    model.eval()
    inter = union = 0.0
    for k in range(6):
        x, y = stream.decode(10 ** 6 + k)
        p = (model.module(x) > 0).float()
        inter += (p * y).sum().item()
        union += ((p + y) > 0).float().sum().item()
    model.train()
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(parts, {"site": stream.site, "inter": inter, "union": union})
    return {d["site"]: d["inter"] / max(d["union"], 1.0) for d in parts}


@record
def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    scratch = os.path.join(os.environ["SCRATCH"], f"rank{rank}")
    store = ShardStore(scratch)
    stream = TileStream(list(SITES)[rank], os.path.join(scratch, "tiles"))

    torch.manual_seed(0)
    model = UNet()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4)
    start = 0
    state = store.load_latest()
    if state is not None:
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        start = state["step"]
        print(f"[rank{rank}] restart {os.environ.get('TORCHELASTIC_RESTART_COUNT')}: resuming from step {start}", flush=True)
    model = DDP(model)

    t0 = time.time()
    for step in range(start + 1, MAX_STEPS + 1):
        x, y = stream.get(step)
        losses = F.binary_cross_entropy_with_logits(model(x), y, reduction="none").mean((1, 2, 3))
        opt.zero_grad()
        losses.mean().backward()
        opt.step()

        if rank == 0 and step % 20 == 0:
            print(f"step {step} loss {losses.mean().item():.4f} {(time.time() - t0) / 20 * 1e3:.0f} ms/step", flush=True)
            t0 = time.time()
        if step % SAVE_EVERY == 0:
            store.save(step, {"model": model.module.state_dict(), "opt": opt.state_dict(), "step": step})
        if step % EVAL_EVERY == 0:
            iou = evaluate(model, stream, step)
            if rank == 0:
                print(f"step {step} IoU " + " ".join(f"{k}={v:.3f}" for k, v in sorted(iou.items())), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
