import torch
import torch.nn as nn


class NoValidAnchorsError(RuntimeError):
    pass


class DraftModel(nn.Module):
    """Predicts a block of the next tokens from an anchor position."""

    def __init__(self, vocab=300, dim=64, block=8):
        super().__init__()
        self.block = block
        self.emb = nn.Embedding(vocab, dim)
        self.enc = nn.GRU(dim, dim, batch_first=True)
        self.heads = nn.ModuleList([nn.Linear(dim, vocab) for _ in range(block)])

    def forward(self, tokens, lengths, anchors_per_sample=2):
        hidden, _ = self.enc(self.emb(tokens))
        rows, cols = [], []
        for i, n in enumerate(lengths.tolist()):
            last = n - self.block - 1
            if last <= 0:
                continue
            pos = torch.randint(0, last, (anchors_per_sample,))
            rows += [i] * anchors_per_sample
            cols += pos.tolist()
        if not rows:
            raise NoValidAnchorsError(f"no sample of the micro-batch is longer than {self.block}")
        rows, cols = torch.tensor(rows), torch.tensor(cols)
        h = hidden[rows, cols]
        loss = 0.0
        for k, head in enumerate(self.heads, 1):
            loss = loss + nn.functional.cross_entropy(head(h), tokens[rows, cols + k])
        return loss / self.block
