"""ConvLSTM: predicts the next frame of each step."""
import torch
import torch.nn.functional as F
from torch import nn


class ConvLSTMCell(nn.Module):
    def __init__(self, cin, hidden):
        super().__init__()
        self.hidden = hidden
        self.gates = nn.Conv2d(cin + hidden, 4 * hidden, 3, padding=1)

    def forward(self, x, state):
        h, c = state
        i, f, o, g = self.gates(torch.cat([x, h], 1)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, c


class FramePredictor(nn.Module):
    def __init__(self, hidden=12):
        super().__init__()
        self.cell = ConvLSTMCell(1, hidden)
        self.out = nn.Conv2d(hidden, 1, 1)

    def forward(self, frames):
        b, t, _, h, w = frames.shape
        state = (
            frames.new_zeros(b, self.cell.hidden, h, w),
            frames.new_zeros(b, self.cell.hidden, h, w),
        )
        outs = []
        for step in range(t):
            state = self.cell(frames[:, step], state)
            outs.append(self.out(state[0]))
        pred = torch.stack(outs, 1)
        loss = F.mse_loss(pred[:, :-1], frames[:, 1:])
        return loss, pred


def make():
    return FramePredictor()


def batch(batch_size=3):
    return torch.rand(batch_size, 6, 1, 16, 16)
