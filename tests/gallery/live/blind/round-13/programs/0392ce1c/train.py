import argparse
import logging
import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from clipnet.data import ClipFrames, prepare_clips

log = logging.getLogger("clipnet")


def build_model():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 6),
    )


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--clips", type=int, default=18)
    ap.add_argument("--epochs", type=int, default=200)
    ap.add_argument("--steps-per-epoch", type=int, default=100)
    args = ap.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s r{rank} %(message)s")

    box = [tempfile.mkdtemp(prefix="clips-") if rank == 0 else None]
    if rank == 0:
        prepare_clips(box[0], args.clips)
    dist.broadcast_object_list(box)

    model = DDP(build_model())
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    stream = iter(ClipFrames(box[0], rank, world))
    t0 = time.time()
    for epoch in range(args.epochs):
        total = torch.zeros(1)
        for step in range(args.steps_per_epoch):
            x, y = next(stream)
            loss = loss_fn(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach()
            if step % 20 == 0 and rank == 0:
                log.info("epoch %d step %d loss %.4f (%.1fs)", epoch, step, loss.item(), time.time() - t0)
        dist.all_reduce(total)
        if rank == 0:
            log.info("epoch %d mean loss %.4f", epoch, total.item() / (world * args.steps_per_epoch))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
