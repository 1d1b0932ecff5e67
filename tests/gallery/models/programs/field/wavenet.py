"""WaveNet over raw audio: dilated causal convolutions with gates, skip connections."""
import torch
import torch.nn.functional as F
from torch import nn


class CausalConv1d(nn.Conv1d):
    def __init__(self, cin, cout, kernel, dilation=1):
        super().__init__(cin, cout, kernel, dilation=dilation)
        self.left = (kernel - 1) * dilation

    def forward(self, x):
        return super().forward(F.pad(x, (self.left, 0)))


class GatedLayer(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.conv = CausalConv1d(channels, 2 * channels, 2, dilation)
        self.res = nn.Conv1d(channels, channels, 1)
        self.skip = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        a, b = self.conv(x).chunk(2, dim=1)
        h = torch.tanh(a) * torch.sigmoid(b)
        return x + self.res(h), self.skip(h)


class WaveNet(nn.Module):
    def __init__(self, levels=64, channels=16, layers=5):
        super().__init__()
        self.embed = nn.Embedding(levels, channels)
        self.first = CausalConv1d(channels, channels, 2)
        self.layers = nn.ModuleList(GatedLayer(channels, 2**i) for i in range(layers))
        self.end1 = nn.Conv1d(channels, channels, 1)
        self.end2 = nn.Conv1d(channels, levels, 1)

    def forward(self, samples):
        x = self.first(self.embed(samples).transpose(1, 2))
        skips = 0
        for layer in self.layers:
            x, skip = layer(x)
            skips = skips + skip
        logits = self.end2(F.relu(self.end1(F.relu(skips)))).transpose(1, 2)
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), samples[:, 1:].flatten())
        return loss, logits


def wavenet():
    return WaveNet()


def audio(rows, length):
    return torch.randint(0, 64, (rows, length))
