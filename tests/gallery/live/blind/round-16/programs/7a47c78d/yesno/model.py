import torch.nn as nn


class Tdnn(nn.Module):
    def __init__(self, num_features, num_classes, dim=96):
        super().__init__()
        self.tdnn = nn.Sequential(
            nn.Conv1d(num_features, dim, 3), nn.ReLU(), nn.BatchNorm1d(dim, affine=False),
            nn.Conv1d(dim, dim, 5), nn.ReLU(), nn.BatchNorm1d(dim, affine=False),
            nn.Conv1d(dim, dim, 5, stride=2), nn.ReLU(), nn.BatchNorm1d(dim, affine=False))
        self.output = nn.Linear(dim, num_classes)

    def forward(self, x):
        return self.output(self.tdnn(x.transpose(1, 2)).transpose(1, 2)).log_softmax(-1)
