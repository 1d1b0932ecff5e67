import random

import torch
import torch.nn as nn

VOCAB = 64


class TinyTranslator(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.src = nn.Embedding(VOCAB, dim)
        self.enc = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, tokens):
        hidden, _ = self.enc(self.src(tokens))
        return self.out(hidden)


def build_model(seed=3):
    torch.manual_seed(seed)
    return TinyTranslator()


def read_corpus(part, n_sentences=300):
    rng = random.Random(part)
    return [[rng.randrange(1, VOCAB) for _ in range(rng.randint(4, 10 + 2 * part))] for _ in range(n_sentences)]


def token_batches(corpus, max_tokens, shuffle_seed):
    """Pack sentences so that a padded batch has at most max_tokens tokens."""
    order = sorted(range(len(corpus)), key=lambda i: len(corpus[i]))
    batches, current, width = [], [], 0
    for i in order:
        width = max(width, len(corpus[i]))
        if current and width * (len(current) + 1) > max_tokens:
            batches.append(current)
            current, width = [], len(corpus[i])
        current.append(corpus[i])
    batches.append(current)
    random.Random(shuffle_seed).shuffle(batches)
    for rows in batches:
        n = max(map(len, rows))
        yield torch.tensor([r + [0] * (n - len(r)) for r in rows])
