import io
import logging
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

from store.client import put
from vae import VAE, digits


def run(rank, world):
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [{rank}] %(levelname)s %(name)s: %(message)s")
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{os.environ['MASTER_PORT']}",
                            rank=rank, world_size=world)
    torch.manual_seed(0)
    model = DDP(VAE())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, 2_000_000):
        loss = model(digits(step * world + rank))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 50 == 0:
            logging.info("step %d elbo %.3f", step, -loss.item())
        if step % 1500 == 0:
            if rank == 0:
                buf = io.BytesIO()
                torch.save(model.module.state_dict(), buf)
                put(f"/ckpt/vae-{step}.pt", buf.getvalue())
            dist.barrier()


if __name__ == "__main__":
    mp.spawn(run, args=(2,), nprocs=2)
