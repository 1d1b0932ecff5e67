import torch
from torch import nn

from det.comm import reduce_mean


class Fcos(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1), nn.GroupNorm(4, width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1), nn.GroupNorm(4, 2 * width), nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, 1, 1), nn.ReLU(),
        )
        self.cls = nn.Conv2d(2 * width, 1, 3, 1, 1)
        self.reg = nn.Conv2d(2 * width, 4, 3, 1, 1)
        self.ctr = nn.Conv2d(2 * width, 1, 3, 1, 1)

    def forward(self, images):
        f = self.stem(images)
        return self.cls(f), self.reg(f), self.ctr(f)


def assign(shape, boxes, stride=4):
    """For every cell the distances to the sides of a box that covers it, and whether there is one."""
    h, w = shape
    ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    cx, cy = xs * stride + stride / 2, ys * stride + stride / 2
    target = torch.zeros(4, h, w)
    positive = torch.zeros(h, w, dtype=torch.bool)
    for x0, y0, x1, y1 in boxes.tolist():
        inside = (cx > x0) & (cx < x1) & (cy > y0) & (cy < y1)
        ltrb = torch.stack([cx - x0, cy - y0, x1 - cx, y1 - cy])
        target = torch.where(inside, ltrb, target)
        positive |= inside
    return target, positive


def fcos_losses(outputs, boxes, stride=4):
    cls, reg, ctr = outputs
    pairs = [assign(cls.shape[-2:], b, stride) for b in boxes]
    target = torch.stack([p[0] for p in pairs])
    positive = torch.stack([p[1] for p in pairs])

    loss_cls = nn.functional.binary_cross_entropy_with_logits(cls[:, 0], positive.float())
    num_pos = positive.sum().float()
    if num_pos == 0:
        return {"loss_cls": loss_cls, "loss_reg": reg.sum() * 0, "loss_ctr": ctr.sum() * 0}

    num_pos_avg = reduce_mean(num_pos).clamp(min=1.0)
    mask = positive.unsqueeze(1)
    t = target.movedim(1, -1)[positive]
    p = reg.exp().movedim(1, -1)[positive]
    centre = ((t[:, :2].amin(1) / t[:, :2].amax(1)).clamp(0, 1)).sqrt()
    loss_reg = (nn.functional.smooth_l1_loss(p, t / stride, reduction="none").mean(1)).sum() / num_pos_avg
    loss_ctr = nn.functional.binary_cross_entropy_with_logits(ctr[mask], centre, reduction="sum") / num_pos_avg
    return {"loss_cls": loss_cls, "loss_reg": loss_reg, "loss_ctr": loss_ctr}
