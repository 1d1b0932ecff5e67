from torch import nn


def conv(i, o, s=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.SiLU())


class YoLite(nn.Module):
    def __init__(self, classes=4, w=16):
        super().__init__()
        self.stem = conv(3, w, 2)
        self.stages = nn.Sequential(conv(w, 2 * w, 2), conv(2 * w, 2 * w), conv(2 * w, 4 * w, 2))
        self.head = nn.Linear(4 * w, classes)

    def forward(self, x):
        return self.head(self.stages(self.stem(x)).mean((2, 3)))
