"""VGG without batch normalisation."""
import torch
from torch import nn


class VGG(nn.Module):
    def __init__(self, plan=(16, "M", 24, "M", 32, 32, "M", 48, 48, "M"), classes=10, dropout=0.5):
        super().__init__()
        layers, cin = [], 3
        for v in plan:
            if v == "M":
                layers.append(nn.MaxPool2d(2, 2))
            else:
                layers += [nn.Conv2d(cin, v, 3, padding=1), nn.ReLU(inplace=True)]
                cin = v
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((3, 3))
        self.classifier = nn.Sequential(
            nn.Linear(cin * 9, 128),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(128, 128),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(128, classes),
        )
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                nn.init.constant_(m.bias, 0)
            elif isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, 0, 0.01)
                nn.init.constant_(m.bias, 0)

    def forward(self, x):
        x = self.avgpool(self.features(x))
        return self.classifier(torch.flatten(x, 1))


def vgg():
    return VGG()


def batch(rows):
    return torch.randn(rows, 3, 64, 64)
