import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

from history import RunHistory
from volumes import CachedVolumes, threshold_curve


def net(w=8):
    return nn.Sequential(nn.Conv3d(1, w, 3, padding=1), nn.PReLU(), nn.Conv3d(w, w, 3, padding=1), nn.PReLU(),
                         nn.Conv3d(w, 1, 1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--max-epochs", type=int, default=10)
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--run-dir", default="run")
    a = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    ds = CachedVolumes()
    sampler = DistributedSampler(ds)
    dl = DataLoader(ds, a.batch, sampler=sampler)
    model = nn.parallel.DistributedDataParallel(net())
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    hist = RunHistory(a.run_dir) if rank == 0 else None
    step = 0
    for e in range(a.max_epochs):
        sampler.set_epoch(e)
        t0 = time.time()
        for x, y in dl:
            out = model(x)
            loss = nn.functional.binary_cross_entropy_with_logits(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if hist is not None:
                curve = threshold_curve(out.detach().sigmoid(), y)
                hist.add(step, {"loss": loss.item()}, {"dice": curve, "threshold": [i / 400 for i in range(400)]})
                print(f"epoch {e} step {step} loss {hist.smoothed('loss'):.4f}", flush=True)
        if rank == 0:
            print(f"epoch {e} took {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
