import argparse
import os
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from features import Utterances

RANK, WORLD = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])


class Acoustic(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(80, 48, batch_first=True)
        self.out = nn.Linear(48, 29)

    def forward(self, x):
        return self.out(self.rnn(x)[0]).log_softmax(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fbank-dir", required=True)
    args = parser.parse_args()
    dist.init_process_group("gloo", rank=RANK, world_size=WORLD)
    model = DDP(Acoustic())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = Utterances(args.fbank_dir, RANK, WORLD)
    ctc = nn.CTCLoss()
    last = time.time()
    for step in range(100_000):
        x = torch.from_numpy(np.stack([data[step * 2], data[step * 2 + 1]]))
        targets = torch.randint(1, 29, (2, 12))
        scores = model(x).transpose(0, 1)
        loss = ctc(scores, targets, torch.full((2,), x.shape[1]), torch.full((2,), 12))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if RANK == 0 and step % 10 == 0:
            print(f"step {step} ctc {loss.item():.3f} {time.time() - last:.2f}s/10", flush=True)
            last = time.time()


if __name__ == "__main__":
    main()
