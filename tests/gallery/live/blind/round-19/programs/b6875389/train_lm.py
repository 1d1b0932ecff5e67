import argparse
import gc
import logging
import queue
import threading
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from ckpt import Checkpointer
from lm import LM

log = logging.getLogger("lm")


class MetricSink(threading.Thread):
    def __init__(self):
        super().__init__(name="metric-sink", daemon=True)
        self.inbox = queue.Queue()
        self.history = []

    def run(self):
        while True:
            self.history.append(self.inbox.get())


def sample(gen, batch, ctx):
    start = torch.randint(256, (batch, 1), generator=gen)
    stride = torch.randint(1, 6, (batch, 1), generator=gen)
    return (start + stride * torch.arange(ctx + 1)) % 256


def loss_of(model, tokens):
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


@torch.no_grad()
def validate(model, batches):
    model.eval()
    total = torch.zeros(1)
    for tokens in batches:
        total += loss_of(model, tokens)
    dist.all_reduce(total)
    model.train()
    return total.item() / len(batches) / dist.get_world_size()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ckpt", required=True)
    p.add_argument("--steps", type=int, default=100000)
    p.add_argument("--accumulate", type=int, default=2)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("cpu:gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.ERROR, format="%(asctime)s %(message)s")
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(2)
    model = LM()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, foreach=False)
    checkpointer = Checkpointer(args.ckpt)
    sink = MetricSink()
    sink.start()
    gen = torch.Generator().manual_seed(70 + rank)
    held_out = [sample(torch.Generator().manual_seed(900 + i * world + rank), 6, 95) for i in range(30)]

    gc.disable()
    mark = time.time()
    for step in range(1, args.steps + 1):
        for micro in range(args.accumulate):
            model.set_requires_gradient_sync(micro == args.accumulate - 1)
            loss = loss_of(model, sample(gen, 6, 95)) / args.accumulate
            loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False).full_tensor()
        optimizer.step()
        optimizer.zero_grad()
        sink.inbox.put((step, loss.item(), norm.item()))
        if step % 10 == 0:
            log.info("step %d loss %.4f norm %.3f %.2fs", step, loss.item() * args.accumulate, norm.item(), time.time() - mark)
            mark = time.time()
        if step % 50 == 0:
            gc.collect()
        if step % 60 == 0:
            log.info("step %d validation %.4f", step, validate(model, held_out))
        if step % 80 == 0:
            checkpointer.save(step, model, optimizer)
            log.info("step %d checkpoint under way", step)

    checkpointer.wait()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
