import os
import random
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from fednet import Channel, SensorNet


INITIAL_READINGS = {1: 72, 2: 58, 3: 83}


class SensorLog:
    """Local readings of one site; a few new ones arrive between two rounds."""

    def __init__(self, site, capacity=400):
        self.rng = random.Random(site * 31)
        self.gen = torch.Generator().manual_seed(site)
        self.capacity = capacity
        self.x = torch.randn(INITIAL_READINGS[site], 12, generator=self.gen)

    def collect(self):
        fresh = torch.randn(self.rng.choice((2, 4, 6)), 12, generator=self.gen)
        self.x = torch.cat([self.x, fresh])[-self.capacity:]

    def dataset(self):
        return TensorDataset(self.x, self.x[:, :4].argmax(1))


def local_training(model, data, epochs, lr=0.05, batch_size=16):
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for _ in range(epochs):
        for x, y in DataLoader(data, batch_size=batch_size, shuffle=True):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.08)
    return loss.item()


def main():
    channel = Channel()
    site = channel.rank
    log = SensorLog(site)
    model = SensorNet()
    for rnd in range(int(os.environ.get("ROUNDS", "50"))):
        model.load_state_dict(channel.fetch(f"round/{rnd}/global"))
        log.collect()
        data = log.dataset()
        loss = local_training(model, data, epochs=2)
        channel.publish(f"round/{rnd}/update/{site}", (len(data), model.state_dict()))
        if rnd % 5 == 0:
            print(f"[site {site}] round {rnd} loss {loss:.4f} on {len(data)} readings", flush=True)


if __name__ == "__main__":
    main()
