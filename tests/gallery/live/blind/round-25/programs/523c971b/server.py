import threading

import torch
from torch import nn
from torch.distributed import rpc

from model import Tagger

SNAPSHOT_EVERY = 60


class BatchedParameterServer:
    """Collects one gradient of every trainer, steps once, hands the new weights to all."""

    def __init__(self, num_trainers, lr=0.05):
        torch.manual_seed(0)
        self.model = Tagger()
        for p in self.model.parameters():
            p.grad = torch.zeros_like(p)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.num_trainers = num_trainers
        self.received = 0
        self.version = 0
        self.lock = threading.Lock()
        self.round = torch.futures.Future()
        self.history = {}
        self.best = (float("inf"), None)

    def weights(self):
        return {k: v.clone() for k, v in self.model.state_dict().items()}

    def _record_snapshot(self, fut):
        weights = fut.value()
        norm = torch.sqrt(sum((w.float() ** 2).sum() for w in weights.values())).item()
        with self.lock:
            self.history[self.version] = norm
            if norm < self.best[0]:
                self.best = (norm, weights)
        print(f"[ps] snapshot at version {self.version}: |w| = {norm:.3f}", flush=True)

    def _apply(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        self.received = 0
        self.version += 1
        if self.version % 20 == 0:
            print(f"[ps] version {self.version}", flush=True)

    @staticmethod
    @rpc.functions.async_execution
    def push_and_pull(ps_rref, name, grads):
        self = ps_rref.local_value()
        with self.lock:
            for p, g in zip(self.model.parameters(), grads):
                p.grad += g / self.num_trainers
            self.received += 1
            fut = self.round
            if self.received == 1 and (self.version + 1) % SNAPSHOT_EVERY == 0:
                fut.add_done_callback(self._record_snapshot)
            if self.received >= self.num_trainers:
                self._apply()
                self.round = torch.futures.Future()
                fut.set_result(self.weights())
        return fut

    @staticmethod
    def pull(ps_rref):
        self = ps_rref.local_value()
        with self.lock:
            return self.weights()
