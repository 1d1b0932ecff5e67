import argparse
import json
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from checkpoint import Checkpointer
from sync import HierarchicalSync
from topology import Topology


class LM(nn.Module):
    def __init__(self, vocab, dim, layers):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, layers, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        h, _ = self.rnn(self.embed(ids))
        return self.head(h)


def batches(cfg, rank):
    g = torch.Generator().manual_seed(100 + rank)
    while True:
        start = torch.randint(0, cfg["vocab"], (cfg["batch_size"], 1), generator=g)
        yield (start + torch.arange(cfg["seq_len"] + 1) * 7) % cfg["vocab"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--config", default="base.json")
    with open(p.parse_args().config) as f:
        cfg = json.load(f)

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    topo = Topology()
    torch.manual_seed(0)
    model = LM(cfg["vocab"], cfg["dim"], cfg["layers"])
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    sync = HierarchicalSync(model, topo, cfg["inter_node_every"])
    ckpt = Checkpointer(cfg["out"])

    t0 = time.time()
    data = batches(cfg, topo.rank)
    for step in range(1, cfg["steps"] + 1):
        ids = next(data)
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        sync.reduce_gradients()
        optimizer.step()
        optimizer.zero_grad()
        sync.average_parameters()
        if step % cfg["log_every"] == 0 and topo.rank == 0:
            print(f"step {step} loss {loss.item():.4f} elapsed {time.time() - t0:.1f}s", flush=True)
        if step % cfg["save_every"] == 0:
            ckpt.save(model, optimizer, step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
