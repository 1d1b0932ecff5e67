import shutil
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.fsdp import fully_shard

from storage import SharedDiskWriter

torch.set_num_threads(1)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    ckpt_group = dist.new_group(backend="gloo")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(128, 32), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 128))
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    pending, last = None, None
    for step in range(1, 100001):
        ids = torch.randint(0, 128, (4, 17))
        loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad()
        time.sleep(0.1)
        if step % 20 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step % 60 == 0:
            t0 = time.time()
            if pending is not None:
                pending.result()
                if rank == 0:
                    print(f"waited {time.time() - t0:.1f}s for the previous checkpoint", flush=True)
                    if last:
                        shutil.rmtree(last, ignore_errors=True)
                last = path
            path = f"ckpt/step{step}"
            pending = dcp.async_save({"model": model.state_dict()}, storage_writer=SharedDiskWriter(path), process_group=ckpt_group)


if __name__ == "__main__":
    main()
