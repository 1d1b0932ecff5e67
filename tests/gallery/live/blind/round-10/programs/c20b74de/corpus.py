import random

import torch

WORDS = {
    "prose": "the river bends past an old mill where nobody grinds corn since the war".split(),
    "code": "def return self import for in range ( ) : = + [ ] None".split(),
    "math": "sum integral x y z = < > + - 0 1 2 3 lim".split(),
}


def document(rng, domain, n):
    words = WORDS[domain]
    text = []
    while sum(len(w) + 1 for w in text) < n:
        i = rng.randrange(len(words))
        text += words[i : i + rng.randint(1, 4)]
    return " ".join(text)


def stream(rank, batch_size, seq_len):
    rng = random.Random(1000 + rank)
    step = 0
    while True:
        mix = ["prose", "code", "math"] if step < 200 else ["prose", "prose", "prose", "code"]
        docs = [document(rng, rng.choice(mix), 2 * seq_len)[: seq_len + 1] for _ in range(batch_size)]
        yield torch.tensor([[min(ord(c), 255) for c in d] for d in docs])
        step += 1
