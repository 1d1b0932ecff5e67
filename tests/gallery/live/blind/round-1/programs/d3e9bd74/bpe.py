import random
from collections import Counter


def make_text(n_words, seed):
    rng = random.Random(seed)
    syll = ["ka", "to", "mi", "re", "sol", "an", "ber", "lin", "st", "er", "ung", "ne", "vo", "du"]
    lexicon = ["".join(rng.choices(syll, k=rng.randint(1, 5))) for _ in range(20000)]
    return [rng.choice(lexicon) for _ in range(n_words)]


def learn_merges(words, n_merges, log=None):
    vocab = Counter(tuple(w) for w in words)
    merges = []
    for m in range(n_merges):
        pairs = Counter()
        for sym, c in vocab.items():
            for a, b in zip(sym, sym[1:]):
                pairs[a, b] += c
        if not pairs:
            break
        best = max(pairs, key=lambda p: (pairs[p], p))
        merges.append(best)
        fresh = Counter()
        for sym, c in vocab.items():
            fresh[merge(sym, best)] += c
        vocab = fresh
        if log and m % 20 == 0:
            log(f"merge {m}: {best[0]}+{best[1]} ({pairs[best]})")
    return merges


def merge(sym, pair):
    out, i = [], 0
    while i < len(sym):
        if i + 1 < len(sym) and (sym[i], sym[i + 1]) == pair:
            out.append(sym[i] + sym[i + 1])
            i += 2
        else:
            out.append(sym[i])
            i += 1
    return tuple(out)


def encode(words, merges, table):
    ids = []
    for w in words:
        sym = tuple(w)
        for pair in merges:
            if len(sym) == 1:
                break
            sym = merge(sym, pair)
        ids.extend(table.setdefault(s, len(table)) for s in sym)
    return ids
