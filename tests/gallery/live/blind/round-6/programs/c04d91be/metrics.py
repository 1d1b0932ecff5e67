import torch
import torch.distributed as dist

from engine import Events


class RunningAverage:
    """Exponential average of an output of the engine, the same on all processes."""

    def __init__(self, output_transform, alpha=0.95):
        self.transform, self.alpha, self.value = output_transform, alpha, None

    def _reduced(self, v):
        t = torch.tensor([float(v)])
        if dist.is_initialized() and dist.get_world_size() > 1:
            parts = [torch.empty_like(t) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, t)
            t = torch.stack(parts).mean()
        return t.item()

    def update(self, engine, name):
        v = self._reduced(self.transform(engine.state.output))
        self.value = v if self.value is None else self.alpha * self.value + (1 - self.alpha) * v
        engine.state.metrics[name] = self.value

    def attach(self, engine, name):
        engine.add_event_handler(Events.ITERATION_COMPLETED, self.update, name)
