import torch
import torch.distributed as dist


def group_relative(rewards, group_size):
    """Centre the rewards of the samples that share a prompt."""
    grouped = rewards.view(-1, group_size)
    return (grouped - grouped.mean(1, keepdim=True)).flatten()


def masked_whiten(values, mask, eps=1e-6):
    """Normalise to zero mean and unit variance over all valid entries of the batch."""
    stats = torch.stack([(values * mask).sum(), (values.square() * mask).sum(), mask.sum()])
    dist.all_reduce(stats)
    mean = stats[0] / stats[2].clamp(min=1)
    var = (stats[1] / stats[2].clamp(min=1) - mean.square()).clamp(min=0)
    return (values - mean) * torch.rsqrt(var + eps) * mask


class AdvantageEstimator:
    """Per-prompt baseline; whitening from the step on at which rewards have settled."""

    def __init__(self, group_size, whiten_after):
        self.group_size = group_size
        self.whiten_after = whiten_after

    def __call__(self, step, rewards, lengths):
        adv = group_relative(rewards, self.group_size)
        if step >= self.whiten_after:
            adv = masked_whiten(adv, (lengths > 0).float())
        return adv
