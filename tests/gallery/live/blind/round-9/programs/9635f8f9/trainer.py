import time

import torch
import torch.nn.functional as F
from torch.distributed import rpc

from server import ParameterServer, make_model


class Trainer:
    def __init__(self, ps_rref, index, args):
        self.ps_rref, self.index, self.args = ps_rref, index, args
        self.ps = ps_rref.owner()
        self.model = make_model()
        self.held_out = make_model()
        g = torch.Generator().manual_seed(50)
        self.proj = torch.randn(64, 8, generator=g)
        self.gen = torch.Generator().manual_seed(1000 + index)

    def batch(self, n):
        x = torch.randn(n, 64, generator=self.gen)
        return x, (x @ self.proj).argmax(1)

    @staticmethod
    def load(model, state):
        with torch.no_grad():
            for p, s in zip(model.parameters(), state):
                p.copy_(s)

    def evaluate(self, future):
        version, state = future.wait()
        self.load(self.held_out, state)
        x, y = self.batch(512)
        with torch.no_grad():
            acc = (self.held_out(x).argmax(1) == y).float().mean().item()
        print(f"[trainer{self.index}] eval at version {version}: acc {acc:.3f}", flush=True)

    def run(self):
        version, state = rpc.rpc_sync(self.ps, ParameterServer.fetch, args=(self.ps_rref,))
        t0, future = time.time(), None
        for step in range(1, self.args.steps + 1):
            self.load(self.model, state)
            x, y = self.batch(self.args.batch_size)
            self.model.zero_grad(set_to_none=True)
            loss = F.cross_entropy(self.model(x), y)
            loss.backward()
            if step % self.args.eval_every == 0:
                future = rpc.rpc_async(self.ps, ParameterServer.snapshot, args=(self.ps_rref, step))
            version, state = rpc.rpc_sync(
                self.ps, ParameterServer.push,
                args=(self.ps_rref, version, [p.grad for p in self.model.parameters()]),
            )
            if future is not None:
                self.evaluate(future)
                future = None
            if self.index == 1 and step % 10 == 0:
                print(f"step {step} version {version} loss {loss.item():.4f} {(time.time() - t0) / 10 * 1e3:.0f} ms/step", flush=True)
                t0 = time.time()


def run_trainer(ps_rref, index, args):
    torch.set_num_threads(1)
    Trainer(ps_rref, index, args).run()
