import json
import os
import tempfile

import numpy as np
from torch.distributed.tensor import DTensor


def local(t):
    t = t.to_local() if isinstance(t, DTensor) else t
    return t.detach().numpy().ravel()


def summary(values):
    counts, edges = np.histogram(values, bins=64)
    return {
        "hist": counts.tolist(),
        "edges": edges.tolist(),
        "quantiles": np.quantile(values, [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99]).tolist(),
        "norm": float(np.linalg.norm(values)),
    }


class Watcher:
    """Norms, quantiles and histograms of weights, gradients and optimizer moments."""

    def __init__(self, model, opt, what="gradients"):
        self.model, self.opt, self.what = model, opt, what
        fd, self.path = tempfile.mkstemp(prefix="watch-", suffix=".jsonl")
        self.out = os.fdopen(fd, "w")

    def record(self, step):
        row = {"step": step}
        for name, p in self.model.named_parameters():
            row[name + ".grad"] = summary(local(p.grad))
            if self.what == "all":
                row[name] = summary(local(p))
                state = self.opt.state[p]
                row[name + ".m"] = summary(local(state["exp_avg"]))
                row[name + ".v"] = summary(local(state["exp_avg_sq"]))
        self.out.seek(0)
        self.out.truncate()
        json.dump(row, self.out)
        self.out.flush()
