import random


def read_lengths(count=900, seed=2):
    rng = random.Random(seed)
    lengths = [min(2048, max(32, int(rng.lognormvariate(4.9, 1.35)))) for _ in range(count)]
    return sorted(lengths)


def split_by_tokens(lengths, world):
    """Contiguous parts with the same number of tokens each."""
    target = sum(lengths) / world
    parts, current, filled = [], [], 0
    for n in lengths:
        current.append(n)
        filled += n
        if filled >= target and len(parts) < world - 1:
            parts.append(current)
            current, filled = [], 0
    parts.append(current)
    return parts


def packs(lengths, budget, rng):
    while True:
        pack, used = [], 0
        while True:
            n = rng.choice(lengths)
            if used + n > budget:
                break
            pack.append(n)
            used += n
        yield pack or [budget]
