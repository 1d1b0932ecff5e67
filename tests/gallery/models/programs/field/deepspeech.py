"""Deep Speech 2: convolutions, bidirectional GRU, CTC."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class DeepSpeech(nn.Module):
    def __init__(self, mels=16, hidden=24, symbols=12):
        super().__init__()
        self.conv = nn.Conv1d(mels, hidden, 5, stride=2, padding=2)
        self.rnn = nn.GRU(hidden, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(2 * hidden)
        self.fc = nn.Linear(2 * hidden, symbols)

    def forward(self, features, lengths, targets, target_lengths):
        keep = torch.arange(features.shape[1], device=features.device)[None] < lengths[:, None]
        x = features * keep[:, :, None]
        x = F.hardtanh(self.conv(x.transpose(1, 2)), 0, 20).transpose(1, 2)
        steps = (lengths - 1) // 2 + 1
        packed = pack_padded_sequence(x, steps.cpu(), batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=x.shape[1])
        logp = self.fc(self.norm(out)).float().log_softmax(-1)
        loss = F.ctc_loss(
            logp.transpose(0, 1), targets, steps, target_lengths, zero_infinity=True
        )
        return {"loss": loss, "log_probs": logp}


def model():
    return DeepSpeech()


def batch(rows, length=80):
    return {
        "features": torch.randn(rows, length, 16),
        "lengths": torch.full((rows,), length),
        "targets": torch.randint(1, 12, (rows, max(1, length // 8))),
        "target_lengths": torch.full((rows,), max(1, length // 8)),
    }
