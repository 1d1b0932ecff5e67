import torch
from torch import nn


class Recogniser(nn.Module):
    def __init__(self, mel: int = 40, hidden: int = 96, units: int = 32) -> None:
        super().__init__()
        self.rnn = nn.GRU(mel, hidden, batch_first=True)
        self.head = nn.Linear(hidden, units)

    def forward(self, audio: torch.Tensor) -> torch.Tensor:
        states, _ = self.rnn(audio)
        return self.head(states).log_softmax(-1)
