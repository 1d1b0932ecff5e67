import numpy as np
import torch


class Runner:
    device = torch.device("mps")

    def put(self, rows):
        return torch.from_numpy(np.asarray(rows, dtype=np.float64)).to(self.device)
