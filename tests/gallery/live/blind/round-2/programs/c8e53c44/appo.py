import time

from sampler import SamplerPool

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

torch.set_num_threads(1)


def main():
    import os
    pool = SamplerPool(3) if os.environ["RANK"] == "0" else None
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for it in range(10000):
        box = [None]
        if rank == 0:
            t0 = time.time()
            box = [pool.rollouts(8)]
            print(f"iteration {it}: {len(box[0])} samples in {time.time() - t0:.1f}s", flush=True)
        dist.broadcast_object_list(box, src=0)
        x = torch.tensor(box[0])
        for _ in range(12):
            loss = (model(x).squeeze(-1) - x.mean(1)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.1)
        if rank == 0:
            print(f"iteration {it}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
