import torch


class ActivationStats:
    """Outlier statistics of the MLP activations of one forward pass."""

    def __init__(self, model):
        self.model = model
        self.values = {}

    def _hook(self, name):
        def fn(module, args, out):
            flat = out.detach().flatten().float()
            q = torch.quantile(flat[:20000], torch.tensor([0.001, 0.5, 0.999]))
            self.values[name] = (q[2] - q[0]).item()
        return fn

    def __enter__(self):
        self.values.clear()
        for name, m in self.model.named_modules():
            if name.endswith("mlp.up"):
                m.register_forward_hook(self._hook(name))
        return self

    def __exit__(self, *exc):
        self.spread = max(self.values.values())
