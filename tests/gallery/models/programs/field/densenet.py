"""DenseNet with optional checkpointing of its layers."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class DenseLayer(nn.Module):
    def __init__(self, cin, growth, bn_size=4, drop=0.0, efficient=True):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(cin)
        self.conv1 = nn.Conv2d(cin, bn_size * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(bn_size * growth)
        self.conv2 = nn.Conv2d(bn_size * growth, growth, 3, padding=1, bias=False)
        self.drop = drop
        self.efficient = efficient

    def bottleneck(self, *xs):
        return self.conv1(F.relu(self.norm1(torch.cat(xs, 1))))

    def forward(self, xs):
        if self.efficient and self.training and any(x.requires_grad for x in xs):
            out = checkpoint(self.bottleneck, *xs, use_reentrant=False)
        else:
            out = self.bottleneck(*xs)
        out = self.conv2(F.relu(self.norm2(out)))
        return F.dropout(out, self.drop, self.training) if self.drop else out


class DenseBlock(nn.Module):
    def __init__(self, n, cin, growth):
        super().__init__()
        self.layers = nn.ModuleList(DenseLayer(cin + i * growth, growth) for i in range(n))

    def forward(self, x):
        xs = [x]
        for layer in self.layers:
            xs.append(layer(xs))
        return torch.cat(xs, 1)


class DenseNet(nn.Module):
    def __init__(self, growth=8, blocks=(2, 2), init=16, classes=5):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, init, 7, 2, 3, bias=False),
            nn.BatchNorm2d(init),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        c, parts = init, []
        for i, n in enumerate(blocks):
            parts.append(DenseBlock(n, c, growth))
            c += n * growth
            if i + 1 < len(blocks):
                parts.append(
                    nn.Sequential(
                        nn.BatchNorm2d(c), nn.ReLU(True), nn.Conv2d(c, c // 2, 1, bias=False), nn.AvgPool2d(2)
                    )
                )
                c //= 2
        self.blocks = nn.Sequential(*parts)
        self.norm = nn.BatchNorm2d(c)
        self.classifier = nn.Linear(c, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight)

    def forward(self, images):
        x = F.relu(self.norm(self.blocks(self.stem(images))))
        return self.classifier(F.adaptive_avg_pool2d(x, 1).flatten(1))


def densenet():
    return DenseNet()


def images(n):
    return torch.randn(n, 3, 64, 64)
