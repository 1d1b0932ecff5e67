import torch
import torch.nn as nn

VOCAB = 256


class TinyLM(nn.Module):
    def __init__(self, dim=128, layers=2):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, layers, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, tokens):
        h, _ = self.rnn(self.emb(tokens))
        return self.out(h)


def token_logps(model, tokens):
    logits = model(tokens[:, :-1])
    return torch.log_softmax(logits, -1).gather(-1, tokens[:, 1:, None]).squeeze(-1)
