import logging

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from mace_train.env import DistributedEnvironment
from mace_train.potentials import Potential, random_clusters


def main():
    env = DistributedEnvironment()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s.%(msecs)03d r{env.rank} %(levelname)s: %(message)s",
                        datefmt="%Y-%m-%d %H:%M:%S")
    logging.info("initializing process group: rank %d, local rank %d", env.rank, env.local_rank)
    dist.init_process_group("gloo", init_method="env://", rank=env.rank, world_size=env.world_size)
    logging.info("process group ready")
    model = DDP(Potential())
    opt = torch.optim.Adam(model.parameters(), lr=1e-2, amsgrad=True)
    for epoch in range(5000):
        for pos, energy in random_clusters(env.rank, 40):
            loss = (model(pos) - energy).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        if env.rank == 0:
            logging.info("Epoch %d: loss=%.4f", epoch, loss.item())


if __name__ == "__main__":
    main()
