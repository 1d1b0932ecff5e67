import torch
from torchmetrics import Metric


class CenterPrecision(Metric):
    """Precision of predicted centres over the whole validation split."""

    full_state_update = False

    def __init__(self, cell=4):
        super().__init__()
        self.cell = cell
        self.add_state("seen", torch.tensor(0), dist_reduce_fx="sum")
        self.add_state("detections", default=[], dist_reduce_fx=None)

    def update(self, preds, heat):
        self.seen += len(preds)
        for boxes, target in zip(preds, heat):
            if boxes.numel() == 0:
                continue
            gx = (boxes[:, 0] / self.cell).long()
            gy = (boxes[:, 1] / self.cell).long()
            hit = target[0, gy, gx]
            self.detections.append(torch.cat([boxes, hit[:, None]], 1))

    def compute(self):
        if not self.detections:
            return torch.tensor(0.0)
        rows = torch.cat([d for d in self.detections], 0)
        return rows[:, 5].mean()
