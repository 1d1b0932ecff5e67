import argparse
import os
import shutil
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from .control import ControlPort, Heartbeat
from .model import MixerLM
from .stream import Prefetcher


def loss_of(model, batch):
    ids, target = batch
    return F.cross_entropy(model(ids).flatten(0, 1), target.flatten())


@torch.no_grad()
def evaluate(model, stream, batches):
    model.eval()
    total = sum(loss_of(model, stream.next()) for _ in range(batches)) / batches
    dist.all_reduce(total)
    model.train()
    return total.item() / dist.get_world_size()


class AsyncSaver:
    def __init__(self, root, group):
        self.root, self.group = root, group
        self.pending, self.saved = None, []

    def save(self, step, model, optim):
        if self.pending is not None:
            self.pending.result()
            if dist.get_rank() == 0 and len(self.saved) > 1:
                shutil.rmtree(self.saved[-2], ignore_errors=True)
        path = os.path.join(self.root, f"step_{step}")
        msd, osd = get_state_dict(model, optim)
        self.pending = dcp.async_save({"model": msd, "optim": osd}, checkpoint_id=path, process_group=self.group)
        self.saved.append(path)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--ckpt", required=True)
    ap.add_argument("--steps", type=int, default=200000)
    ap.add_argument("--accum", type=int, default=2)
    ap.add_argument("--eval-every", type=int, default=150)
    ap.add_argument("--save-every", type=int, default=300)
    args = ap.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    ckpt_group = dist.new_group(backend="gloo")
    os.makedirs(args.ckpt, exist_ok=True)
    Heartbeat(os.path.join(args.ckpt, f"alive_{rank}"))
    control = ControlPort()
    print(f"rank {rank}/{world} control port {control.port}", flush=True)

    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (world,))
    model = MixerLM()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3)
    train, held = Prefetcher(50 + rank, 4, 48), Prefetcher(7000 + rank, 4, 48)
    saver = AsyncSaver(args.ckpt, ckpt_group)

    mark = time.time()
    for step in range(1, args.steps + 1):
        for micro in range(args.accum):
            model.set_requires_gradient_sync(micro == args.accum - 1)
            loss = loss_of(model, train.next()) / args.accum
            loss.backward()
        optim.step()
        optim.zero_grad()
        control.state = {"step": step, "loss": loss.item() * args.accum}
        if rank == 0 and step % 25 == 0:
            print(f"step {step} loss {control.state['loss']:.3f} {(time.time() - mark) / 25:.3f} s/it", flush=True)
            mark = time.time()
        if step % args.eval_every == 0:
            value = evaluate(model, held, 80)
            if rank == 0:
                print(f"step {step} eval loss {value:.3f}", flush=True)
        if step % args.save_every == 0:
            saver.save(step, model, optim)
    if saver.pending is not None:
        saver.pending.result()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
