import torch
from torch import nn

from data import TAGS, VOCAB


class Tagger(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, hidden, padding_idx=0)
        self.encoder = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, TAGS)

    def forward(self, input_ids, labels=None):
        out, _ = self.encoder(self.embed(input_ids))
        logits = self.head(out)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
        return {"loss": loss, "logits": logits}


def decode(logits, mask):
    """Tag sequences without padding, one list per sentence."""
    best = logits.argmax(-1)
    return [row[m].tolist() for row, m in zip(best, mask)]
