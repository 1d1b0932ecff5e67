import torch
import torch.distributed as dist


class RunStats:
    """Loss and gradient size over the whole job, kept off the training groups."""

    def __init__(self):
        self.group = dist.new_group(list(range(dist.get_world_size())))

    def update(self, step, loss, net):
        norm = sum(p.grad.pow(2).sum() for p in net.parameters() if p.grad is not None)
        values = torch.stack([loss.detach(), norm])
        dist.all_reduce(values, group=self.group)
        values /= dist.get_world_size()
        if dist.get_rank() == 0 and step % 100 == 0:
            print(f"stats step {step} loss {values[0]:.4f} grad {values[1].sqrt():.4f}", flush=True)
