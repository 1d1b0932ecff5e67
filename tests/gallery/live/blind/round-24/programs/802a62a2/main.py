import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh

from ckpt_manager import CheckpointManager
from net import build_sharded, make_batch


class SpikeGuard:
    def __init__(self, factor=25.0, warmup=20):
        self.factor, self.warmup, self.ema, self.seen = factor, warmup, None, 0

    def check(self, loss):
        self.seen += 1
        if self.seen > self.warmup and loss > self.factor * self.ema:
            return True
        self.ema = loss if self.ema is None else 0.95 * self.ema + 0.05 * loss
        return False


def shared_workdir():
    box = [tempfile.mkdtemp(prefix="reg_ckpt_") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def global_mean(value):
    t = value.detach().clone()
    dist.all_reduce(t)
    return (t / dist.get_world_size()).item()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("shard",))
    model = build_sharded(mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    manager = CheckpointManager(shared_workdir(), interval=20, keep_last=2)
    guard = SpikeGuard()
    gen = torch.Generator().manual_seed(1 + rank)

    step, batches_seen = 0, 0
    while step < 200000:
        step += 1
        batches_seen += 1
        x, y = make_batch(gen, batches_seen)
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        time.sleep(0.12)
        mean_loss = global_mean(loss)
        if guard.check(mean_loss):
            target = manager.ckpt_steps[-2]
            if rank == 0:
                print(f"step {step} loss {mean_loss:.2f} above threshold, restoring step {target}", flush=True)
            step = manager.restore(target, model, optimizer)
            continue
        optimizer.step()
        manager.save(step, model, optimizer)
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {mean_loss:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
