import torch
import torch.distributed as dist


class ClippedMeanState:
    """Plain averaging for `start_iter` iterations, then averaging with a bound
    on the norm of the whole gradient (the mean over the ranks)."""

    def __init__(self, start_iter, max_norm=1.0, group=None):
        self.group = group if group is not None else dist.group.WORLD
        self.world = dist.get_world_size(self.group)
        self.start_iter = start_iter
        self.max_norm = max_norm
        self.iter = 0
        self.new_iteration()

    def new_iteration(self):
        self.squares = torch.zeros(1)
        self.norm = torch.futures.Future()

    def close_iteration(self):
        norm, squares = self.norm, self.squares
        work = dist.all_reduce(squares, group=self.group, async_op=True)
        work.get_future().then(lambda f: norm.set_result(f.value()[0].div(self.world).sqrt()))
        self.new_iteration()
        self.iter += 1


def clipped_mean_hook(state, bucket):
    grad = bucket.buffer()
    bounded = state.iter >= state.start_iter
    state.squares += grad.pow(2).sum()
    norm = state.norm
    grad.div_(state.world)
    fut = dist.all_reduce(grad, group=state.group, async_op=True).get_future()
    if bucket.is_last():
        state.close_iteration()

    def scale(f):
        mean = f.value()[0]
        if bounded:
            mean.mul_((state.max_norm / (norm.wait() + 1e-6)).clamp(max=1.0))
        return mean

    return fut.then(scale)
