import json
import os
import tempfile
import time

import numpy as np


class Run:
    """Local experiment tracker with the usual log/watch interface."""

    def __init__(self, project, directory=None):
        self.directory = directory or tempfile.mkdtemp(prefix=f"{project}-")
        self.file = open(os.path.join(self.directory, "events.jsonl"), "w")
        self.pending = {}
        self.hooks = []
        self.started = time.time()

    def log(self, values, step):
        row = {"_step": step, "_time": round(time.time() - self.started, 3), **self.pending, **values}
        self.pending = {}
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()
        if self.file.tell() > 20_000_000:
            self.file.seek(0)
            self.file.truncate()

    def watch(self, model, log="gradients", log_freq=1, bins=64):
        for name, param in model.named_parameters():
            if log in ("gradients", "all"):
                self.hooks.append(param.register_hook(self._gradient_hook(name, log_freq, bins)))
        if log in ("parameters", "all"):
            self.hooks.append(model.register_forward_hook(self._parameter_hook(log_freq, bins)))

    def _gradient_hook(self, name, log_freq, bins):
        calls = [0]

        def hook(grad):
            calls[0] += 1
            if calls[0] % log_freq == 0:
                self.pending[f"gradients/{name}"] = histogram(grad, bins)

        return hook

    def _parameter_hook(self, log_freq, bins):
        calls = [0]

        def hook(module, inputs, output):
            if not module.training:
                return
            calls[0] += 1
            if calls[0] % log_freq == 0:
                for name, param in module.named_parameters():
                    self.pending[f"parameters/{name}"] = histogram(param, bins)

        return hook

    def finish(self):
        for hook in self.hooks:
            hook.remove()
        self.file.close()


class NullRun:
    def log(self, values, step):
        pass

    def watch(self, model, **kwargs):
        pass

    def finish(self):
        pass


def histogram(tensor, bins):
    values = tensor.detach().cpu().float().flatten().numpy()
    values = values[np.isfinite(values)]
    if values.size == 0:
        return None
    counts, edges = np.histogram(values, bins=bins)
    return {"bins": edges.round(6).tolist(), "values": counts.tolist()}


def init(kind, project, rank):
    if kind == "none" or rank != 0:
        return NullRun()
    return Run(project)
