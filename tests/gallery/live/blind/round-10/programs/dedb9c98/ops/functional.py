import torch

from .backend import get_backend


class _Voxelize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, feats, coords, resolution):
        out, index, counts = get_backend().voxelize_forward(feats, coords, resolution)
        ctx.save_for_backward(index, counts)
        return out

    @staticmethod
    def backward(ctx, grad):
        index, counts = ctx.saved_tensors
        return get_backend().voxelize_backward(grad.contiguous(), index, counts), None, None


def voxelize(feats, coords, resolution):
    return _Voxelize.apply(feats, coords, resolution)


def neighbour_count(coords, radius):
    return get_backend().ball_query(coords, radius)
