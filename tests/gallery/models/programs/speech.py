"""Letters from spectrograms: strided 1-D convolutions, a GRU and CTC, with lengths in place of a mask."""

import torch
from torch import nn


class Recognizer(nn.Module):
    def __init__(self, bins=20, width=24, letters=12):
        super().__init__()
        self.convs = nn.Sequential(nn.Conv1d(bins, width, 3, stride=2, padding=1), nn.GroupNorm(4, width), nn.GELU())
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * width, letters)

    def forward(self, spectrogram, letters=None):
        x = self.convs(spectrogram.transpose(1, 2)).transpose(1, 2)
        x, _ = self.gru(x)
        logp = self.out(x).log_softmax(-1)
        if letters is None:
            return logp
        rows, frames = logp.shape[:2]
        lengths = torch.full((rows,), frames), torch.full((rows,), letters.size(1))
        return nn.functional.ctc_loss(logp.transpose(0, 1), letters, *lengths, zero_infinity=True), logp


def make(width=24):
    return Recognizer(width=width)


def sample(rows=4):
    return {"spectrogram": torch.randn(rows, 60, 20), "letters": torch.randint(1, 12, (rows, 6))}
