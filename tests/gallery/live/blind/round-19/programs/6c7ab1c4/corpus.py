import random

VOCAB = 512


def make_corpus(n, seed, long_at=()):
    rng = random.Random(seed)
    docs = []
    for k in range(n):
        size = rng.randrange(200, 600)
        if k in long_at:
            size = rng.randrange(36000, 44000)
        doc, t = [], rng.randrange(VOCAB)
        for _ in range(size):
            t = (t * 5 + rng.choice((1, 3, 7, 11))) % VOCAB
            doc.append(t)
        docs.append(doc)
    return docs


def windows(docs, length, seed):
    rng = random.Random(seed)
    while True:
        doc = rng.choice(docs)
        start = rng.randrange(0, len(doc) - length - 1)
        yield doc[start:start + length + 1]
