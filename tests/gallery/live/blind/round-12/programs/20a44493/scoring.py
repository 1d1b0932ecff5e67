from collections import Counter


def ngrams(seq, n):
    return Counter(tuple(seq[i:i + n]) for i in range(len(seq) - n + 1))


def pair_score(hyp, ref):
    total = 0.0
    for n in (1, 2, 3):
        h, r = ngrams(hyp, n), ngrams(ref, n)
        total += sum((h & r).values()) / max(1, sum(h.values()))
    return total / 3


def score_chunk(pairs, out):
    rows = [{"score": pair_score(h, r), "hyp": h, "ref": r} for h, r in pairs]
    out.put(rows)
