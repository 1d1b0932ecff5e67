import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from data import TEST_FILES, make_split, test_files_for


def build():
    return nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 40))


def train(model, rank, epochs, results):
    x, y = make_split(6000, seed=10 + rank)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        t0 = time.time()
        perm = torch.randperm(len(x))
        for chunk in perm.split(64):
            loss = loss_fn(model(x[chunk]), y[chunk])
            opt.zero_grad()
            loss.backward()
            opt.step()
        results.put(("metric", rank, {"epoch": epoch, "loss": loss.item(), "sec": time.time() - t0}))


@torch.no_grad()
def predict(model, rank, world, results):
    model.eval()
    for name in test_files_for(rank, world):
        x, y = make_split(TEST_FILES[name], seed=TEST_FILES[name])
        probs, feats = [], []
        for row in x.split(1):
            h = model[:-1](row)
            feats.append(h)
            probs.append(model[-1](h).softmax(-1))
        results.put(("preds", rank, {"file": name, "probs": torch.cat(probs).numpy(),
                                     "features": torch.cat(feats).numpy(), "y": y.numpy()}))


def run(rank, world, port, results, epochs):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(rank)
    model = DDP(build())
    train(model, rank, epochs, results)
    dist.barrier()
    dist.destroy_process_group()
    predict(model.module, rank, world, results)
    if rank == 0:
        results.put(("finished", rank, None))
    print(f"[rank {rank}] predictions handed over", flush=True)
