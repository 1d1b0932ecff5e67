import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def save(model, path, rank):
    if rank == 0:
        torch.save(model.module.state_dict(), path)
    dist.barrier()


def main(net):
    dist.init_process_group("gloo")
    save(DDP(net), "m.pt", dist.get_rank())


if __name__ == "__main__":
    main(None)
