import os

import torch
from torch.distributed import init_process_group


class Saver:
    out = "runs"

    def __call__(self, net, epoch):
        path = os.path.join(self.out, "epoch_%d.pth" % epoch)
        torch.save({"net": net.state_dict()}, path)


if __name__ == "__main__":
    init_process_group("gloo")
    Saver()(torch.nn.Linear(1, 1), 0)
