import json
import os

import torch
from transformers import TrainerCallback


class WeightMonitor(TrainerCallback):
    """Writes histograms of weights and gradients next to the metrics."""

    def __init__(self, out, bins=64, log="all"):
        self.path = os.path.join(out, "histograms.jsonl")
        self.bins = bins
        self.log = log

    def _histogram(self, t):
        t = t.detach().float().flatten()
        q = torch.quantile(t[:1_000_000], torch.linspace(0, 1, self.bins + 1))
        counts = torch.histc(t, self.bins, q[0].item(), q[-1].item())
        return {"edges": [round(v, 6) for v in q.tolist()], "counts": counts.int().tolist()}

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        if not state.is_world_process_zero:
            return
        row = {"step": state.global_step}
        for name, p in model.named_parameters():
            if self.log in ("all", "parameters"):
                row[f"parameters/{name}"] = self._histogram(p)
            if self.log in ("all", "gradients") and p.grad is not None:
                row[f"gradients/{name}"] = self._histogram(p.grad)
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "a" if state.global_step else "w") as f:
            f.write(json.dumps(row) + "\n")
