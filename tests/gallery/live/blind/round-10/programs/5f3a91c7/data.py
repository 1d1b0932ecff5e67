import random
import torch

VOCAB = ["<pad>", "<bos>", "<eos>"] + list("abcdefghijklmnopqrstuvwxyz =+0123456789")
STOI = {c: i for i, c in enumerate(VOCAB)}
PAD, BOS, EOS = 0, 1, 2


def encode(s):
    return [STOI[c] for c in s]


def decode(ids):
    return "".join(VOCAB[i] for i in ids if i > 2)


def make_record(rng):
    word = "".join(rng.choice("abcdefghij") for _ in range(rng.randint(2, 5)))
    n = rng.randint(1, 4)
    return f"{word} + {n} =", " " + " ".join([word] * n)


class Records:
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.items = [make_record(rng) for _ in range(n)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    seqs = [[BOS] + encode(p) + encode(a) + [EOS] for p, a in items]
    t = max(map(len, seqs))
    ids = torch.full((len(seqs), t), PAD)
    for i, s in enumerate(seqs):
        ids[i, : len(s)] = torch.tensor(s)
    return ids
