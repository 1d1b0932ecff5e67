import torch
import torch.distributed as dist


class RunningStats:
    def __init__(self):
        self.reset()

    def reset(self):
        self.loss = self.correct = self.count = 0.0

    def update(self, logits, y, loss):
        batch = torch.tensor([loss.item() * len(y), float((logits.argmax(1) == y).sum()), float(len(y))])
        dist.all_reduce(batch)
        self.loss += batch[0].item()
        self.correct += batch[1].item()
        self.count += batch[2].item()

    def line(self):
        return f"loss {self.loss / self.count:.4f} acc {self.correct / self.count:.3f}"
