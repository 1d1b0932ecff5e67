"""Which heads train at a step: one head to warm the trunk up, then whatever has enough labels."""
from dataclasses import dataclass

LABELLED = {"depth": 0.9, "normals": 0.7, "edges": 0.6, "albedo": 0.5, "keypoints": 0.35, "flow": 0.3, "saliency": 0.1}


@dataclass
class TaskSchedule:
    warmup_steps: int
    min_labelled: float = 0.25
    primary: str = "depth"

    def active(self, step):
        if step < self.warmup_steps:
            return {self.primary}
        rich = {name for name, share in LABELLED.items() if share >= self.min_labelled}
        return rich - {"flow"} if step % 4 else rich
