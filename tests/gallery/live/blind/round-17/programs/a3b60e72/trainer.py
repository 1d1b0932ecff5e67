import time

import torch
import torch.nn.functional as F
from torch.distributed import rpc

from model import build_model
from server import ParameterServer
from shards import DocShard


class Trainer:
    def __init__(self, ps_rref, rank, args):
        self.ps_rref, self.rank, self.args = ps_rref, rank, args
        self.model = build_model()
        self.data = DocShard(rank, args.batch_size)
        self.name = rpc.get_worker_info().name

    def load(self, weights):
        with torch.no_grad():
            for p, w in zip(self.model.parameters(), weights):
                p.copy_(w)

    def featurize(self, x):
        drop = torch.rand(x.shape) < 0.1
        return x.masked_fill(drop, 0)

    def train(self):
        self.load(self.ps_rref.rpc_sync().weights())
        for epoch in range(self.args.epochs):
            t0, total = time.time(), 0.0
            for i, (x, y) in enumerate(self.data.epoch(seed=epoch)):
                loss = sum(F.cross_entropy(self.model(self.featurize(x)), y) for _ in range(self.args.views)) / self.args.views
                grads = torch.autograd.grad(loss, list(self.model.parameters()))
                weights = rpc.rpc_sync(
                    self.ps_rref.owner(), ParameterServer.push_pull, args=(self.ps_rref, self.name, list(grads)), timeout=0
                )
                self.load(weights)
                total += loss.item()
                if i % 20 == 0:
                    print(f"{self.name} epoch {epoch} batch {i}/{len(self.data)} loss {loss.item():.3f}", flush=True)
            print(f"{self.name} epoch {epoch} done, loss {total / len(self.data):.3f}, {time.time() - t0:.1f}s", flush=True)


def run_trainer(ps_rref, rank, args):
    torch.manual_seed(rank)
    Trainer(ps_rref, rank, args).train()
