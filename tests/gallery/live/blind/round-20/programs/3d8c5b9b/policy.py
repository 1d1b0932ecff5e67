import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self, vocab=256, dim=128):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, num_layers=2, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids, state=None):
        h, state = self.rnn(self.emb(ids), state)
        return self.out(h), state

    @torch.no_grad()
    def sample(self, ids, new):
        logits, state = self(ids[None])
        tokens = []
        for _ in range(new):
            nxt = torch.distributions.Categorical(logits=logits[:, -1]).sample()
            tokens.append(nxt.item())
            logits, state = self(nxt[:, None], state)
        return tokens
