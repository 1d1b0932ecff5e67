import os
import tempfile

import torch


class GradReport:
    """Keeps a readable copy of the newest gradients for the numerics dashboard."""

    def __init__(self, model, warmup=40):
        self.root = tempfile.mkdtemp(prefix="grads_")
        self.warmup, self.calls = warmup, {}
        for name, param in model.named_parameters():
            if param.requires_grad:
                param.register_post_accumulate_grad_hook(self._hook(name))

    def _hook(self, name):
        path = os.path.join(self.root, name.replace(".", "_") + ".txt")

        def write(param):
            n = self.calls[name] = self.calls.get(name, 0) + 1
            if n <= self.warmup:
                return
            grad = param.grad.detach().flatten()
            quantiles = torch.quantile(grad, torch.linspace(0, 1, 11))
            with open(path, "w") as f:
                f.write(" ".join(f"{q:.6e}" for q in quantiles.tolist()) + "\n")
                for value in grad.tolist():
                    f.write(f"{value:.8e}\n")
                f.flush()
                os.fsync(f.fileno())

        return write
