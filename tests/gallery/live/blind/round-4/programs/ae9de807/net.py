import torch
import torch.nn as nn


class SeqNet(nn.Module):
    def __init__(self, dim, scan):
        super().__init__()
        self.inp, self.out = nn.Linear(2, dim), nn.Linear(dim, 2)
        self.gate = nn.Linear(dim, dim)
        self.scan = scan

    def forward(self, x):
        h = self.inp(x)
        decay = torch.sigmoid(self.gate(h))
        with torch.no_grad():
            ctx = self.scan.scan_forward(h.detach().contiguous(), decay.detach().contiguous())
        return self.out(torch.tanh(h * decay + ctx))
