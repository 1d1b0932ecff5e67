import torch
import torch.distributed as dist


class DelayedAverage:
    """Local SGD whose parameter average overlaps with the next local steps."""

    def __init__(self, params, every, lag=2):
        self.params = list(params)
        self.every, self.lag = every, lag
        self.group = dist.new_group(group_desc="averaging")
        self.world = dist.get_world_size()
        self.work = None

    def after_step(self, step):
        if step % self.every == 0:
            self.sent = torch.nn.utils.parameters_to_vector(self.params).detach()
            self.buffer = self.sent.clone()
            self.work = dist.all_reduce(self.buffer, group=self.group, async_op=True)
        elif self.work is not None and step % self.every == self.lag:
            self.work.wait()
            self.work = None
            now = torch.nn.utils.parameters_to_vector(self.params).detach()
            torch.nn.utils.vector_to_parameters(now - self.sent + self.buffer / self.world, self.params)
