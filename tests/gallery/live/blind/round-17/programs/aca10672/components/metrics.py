import json
import logging
import os
import time

import torch
import torch.distributed as dist

logger = logging.getLogger("titan")


def dist_mean(x):
    x = x.detach().clone()
    dist.all_reduce(x)
    return x / dist.get_world_size()


class MetricsProcessor:
    def __init__(self, folder, log_freq):
        self.log_freq = log_freq
        self.is_logger = dist.get_rank() == 0
        self.path = os.path.join(folder, "metrics.jsonl")
        self.best = None
        self.tokens = 0
        self.t0 = time.perf_counter()

    def _write(self, record):
        with open(self.path, "a") as f:
            f.write(json.dumps(record) + "\n")

    def log(self, step, loss, grad_norm):
        if step % self.log_freq != 0:
            return
        avg = dist_mean(loss)
        if not self.is_logger:
            return
        dt = time.perf_counter() - self.t0
        tps = self.tokens / dt
        logger.info("step: %4d  loss: %7.4f  grad_norm: %6.3f  tps: %.0f", step, avg.item(), grad_norm.item(), tps)
        self._write({"step": step, "loss": avg.item(), "grad_norm": grad_norm.item(), "tps": tps})
        self.tokens, self.t0 = 0, time.perf_counter()

    def log_validation(self, step, loss):
        avg = dist_mean(loss)
        if not self.is_logger:
            return
        if self.best is None or avg < self.best:
            self.best = avg
        logger.info("validate step: %4d  loss: %7.4f  ppl: %.2f", step, avg.item(), torch.exp(avg).item())
        self._write({"step": step, "val_loss": avg.item(), "best": self.best})
