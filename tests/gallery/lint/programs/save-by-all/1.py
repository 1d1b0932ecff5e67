import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(model):
    dist.init_process_group("gloo")
    model = DDP(model)
    for epoch in range(3):
        torch.save(model.module.state_dict(), "model.pt")


if __name__ == "__main__":
    main(None)
