import shutil
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.utils import clip_grad_norm_

from control import LiveConfig
from model import Decoder

STEPS, VAL_EVERY, SAVE_EVERY, LOG_EVERY = 100000, 120, 180, 10


def sample(gen, batch=6, ctx=96, vocab=800):
    start = torch.randint(0, vocab, (batch, 1), generator=gen)
    stride = torch.randint(1, 9, (batch, 1), generator=gen)
    ids = (start + stride * torch.arange(ctx + 1)) % vocab
    return ids[:, :-1], ids[:, 1:]


@torch.no_grad()
def validate(model, batches=40):
    model.eval()
    gen = torch.Generator().manual_seed(999)
    total = torch.zeros(())
    for _ in range(batches):
        x, y = sample(gen)
        total += F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    dist.all_reduce(total)
    model.train()
    return total.item() / batches / dist.get_world_size()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("cpu:gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = Decoder()
    mesh = init_device_mesh("cpu", (world,))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    save_group = dist.new_group(backend="gloo")
    live = LiveConfig("live.json", {"lr": 3e-4})
    live.start()

    gen = torch.Generator().manual_seed(rank)
    pending, saved, t0 = None, [], time.time()
    for step in range(1, STEPS + 1):
        for group in optimizer.param_groups:
            group["lr"] = live.get("lr")
        x, y = sample(gen)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

        if step % LOG_EVERY == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f} {(time.time() - t0) / step * 1000:.0f} ms/step", flush=True)
        if step % VAL_EVERY == 0:
            val = validate(model)
            if rank == 0:
                print(f"step {step} validation {val:.4f}", flush=True)
        if step % SAVE_EVERY == 0:
            if pending is not None:
                pending.result()
            msd, osd = get_state_dict(model, optimizer)
            path = f"ckpt/step_{step:07d}"
            pending = dcp.async_save({"model": msd, "optim": osd}, checkpoint_id=path, process_group=save_group)
            saved.append(path)
            if rank == 0 and len(saved) > 3:
                shutil.rmtree(saved[-4], ignore_errors=True)
                print(f"step {step} saving to {path}", flush=True)
    if pending is not None:
        pending.result()
    live.closed.set()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
