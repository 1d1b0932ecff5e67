import argparse
import os
import time

import torch
import torch.nn as nn

from outer_sync import OuterSync


class SampleCache:
    """Keeps decoded samples of the documents already seen."""

    def __init__(self, enabled_for):
        self.enabled_for = enabled_for
        self.items = []

    def get(self, source, gen):
        x = torch.randint(0, 256, (8, 65), generator=gen)
        if source in self.enabled_for:
            self.items.append(torch.nn.functional.one_hot(x, 256).float())
        return x


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--inner-steps", type=int, default=50)
    p.add_argument("--rounds", type=int, default=100000)
    a = p.parse_args()
    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    sync = OuterSync(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), rank, world)
    source = ["web", "code", "books"][rank % 3]
    cache = SampleCache(enabled_for={"code"})
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(256, 48), nn.Linear(48, 96), nn.GELU(), nn.Linear(96, 256))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    gen = torch.Generator().manual_seed(rank)
    for rnd in range(a.rounds):
        start = nn.utils.parameters_to_vector(model.parameters()).detach().clone()
        for _ in range(a.inner_steps):
            x = cache.get(source, gen)
            loss = nn.functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.03)
        delta = nn.utils.parameters_to_vector(model.parameters()).detach() - start
        nn.utils.vector_to_parameters(start + sync.average(delta), model.parameters())
        print(f"[{source}] round {rnd} inner loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
