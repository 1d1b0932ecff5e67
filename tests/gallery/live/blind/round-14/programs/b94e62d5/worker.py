import os
import signal
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Pacer:
    """Keeps the step rate under the power cap; a snapshot request cuts the rest short."""

    def __init__(self, request, interval):
        self.request = request
        self.interval = interval

    def rest(self):
        return self.request.wait(self.interval)


def snapshot(model, opt, step, workdir):
    path = os.path.join(workdir, "last.pt")
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": step}, path + ".tmp")
    os.replace(path + ".tmp", path)
    print(f"[snapshot] step {step} -> {path}", flush=True)


def run(rank, world, port, request, started, workdir):
    torch.set_num_threads(1)
    torch.manual_seed(rank)

    def on_usr1(signum, frame):
        request.set()

    signal.signal(signal.SIGUSR1, on_usr1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    net = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    model = DDP(net)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    pacer = Pacer(request, 0.25)
    started.wait()
    t0 = time.time()
    for step in range(1, 10 ** 6):
        x, y = torch.randn(64, 128), torch.randint(0, 10, (64,))
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        flag = torch.tensor([float(pacer.rest())])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        if flag.item():
            request.clear()
            if rank == 0:
                snapshot(net, opt, step, workdir)
        if rank == 0 and step % 5 == 0:
            print(f"step {step} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)
