import torch
from torchmetrics import Metric


class MentionF1(Metric):
    """Document-level mention F1; keeps one score per document that has mentions."""

    full_state_update = False
    higher_is_better = True

    def __init__(self):
        super().__init__()
        self.add_state("scores", default=[], dist_reduce_fx=None)

    def update(self, preds, target):
        for p, t in zip(preds, target):
            gold = t.nonzero().flatten()
            if gold.numel() == 0:
                continue
            guess = p.nonzero().flatten()
            hit = torch.isin(guess, gold).sum()
            self.scores.append(2.0 * hit / (guess.numel() + gold.numel()))

    def compute(self):
        if len(self.scores) == 0:
            return torch.tensor(0.0)
        return torch.stack([s.float().mean() for s in self.scores]).mean()
