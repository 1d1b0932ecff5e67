import random

import torch

CHARS = "\0\1\2 abcdefghijklmnopqrstuvwxyz0123456789.,"
IDX = {c: i for i, c in enumerate(CHARS)}
BOS, EOS = 1, 2


def sentence(rng):
    k = rng.randint(1, 6)
    return " ".join(rng.choice(("red", "blue", "green")) + " " + str(rng.randint(0, 99)) for _ in range(k)) + "."


def batches(dp_rank, batch_size, epoch_len, seed):
    while True:
        rng = random.Random(seed * 1000 + dp_rank)
        for _ in range(epoch_len):
            rows = [[BOS] + [IDX[c] for c in sentence(rng)] + [EOS] for _ in range(batch_size)]
            t = max(map(len, rows))
            yield torch.tensor([r + [0] * (t - len(r)) for r in rows])
        seed += 1
