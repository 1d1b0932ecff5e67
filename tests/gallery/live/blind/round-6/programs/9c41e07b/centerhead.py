import torch
from torch import nn


class CenterHead(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1), nn.ReLU(),
        )
        self.heat = nn.Conv2d(width, 1, 1)
        self.wh = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        f = self.body(x)
        return self.heat(f), self.wh(f)


@torch.no_grad()
def decode(heat, wh, thr):
    out = []
    prob = heat.sigmoid()
    for p, s in zip(prob, wh):
        ys, xs = torch.nonzero(p[0] > thr, as_tuple=True)
        sc = p[0, ys, xs]
        w, h = s[0, ys, xs].abs(), s[1, ys, xs].abs()
        out.append(torch.stack([xs * 4.0, ys * 4.0, w, h, sc], 1))
    return out
