import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Trainer:
    def __init__(self, model, data, optimizer, save_every):
        self.rank = int(os.environ["RANK"])
        self.model, self.data, self.optimizer, self.save_every = DDP(model), data, optimizer, save_every

    def train(self, epochs):
        for epoch in range(epochs):
            self.data.sampler.set_epoch(epoch)
            for x, y in self.data:
                self.optimizer.zero_grad()
                nn.functional.mse_loss(self.model(x), y).backward()
                self.optimizer.step()
                time.sleep(0.05)
            print(f"[rank{self.rank}] Epoch {epoch} | Steps: {len(self.data)}", flush=True)
            if self.rank == 0 and epoch % self.save_every == 0:
                torch.save(self.model.module.state_dict(), "snapshot.pt")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--total-epochs", type=int)
    p.add_argument("--save-every", type=int)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    ds = TensorDataset(torch.randn(2048, 20), torch.randn(2048, 1))
    data = DataLoader(ds, batch_size=32, sampler=DistributedSampler(ds))
    model = nn.Linear(20, 1)
    Trainer(model, data, torch.optim.SGD(model.parameters(), lr=1e-3), args.save_every).train(args.total_epochs)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
