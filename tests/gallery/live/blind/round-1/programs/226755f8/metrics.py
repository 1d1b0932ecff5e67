from collections import Counter


def lcs(a, b):
    prev = [0] * (len(b) + 1)
    for x in a:
        cur = [0]
        for j, y in enumerate(b):
            cur.append(prev[j] + 1 if x == y else max(prev[j + 1], cur[j]))
        prev = cur
    return prev[-1]


def rouge_l(pred, ref):
    if not pred or not ref:
        return 0.0
    n = lcs(pred, ref)
    p, r = n / len(pred), n / len(ref)
    return 0.0 if n == 0 else 2 * p * r / (p + r)


def bigram_overlap(pred, ref):
    a, b = Counter(zip(pred, pred[1:])), Counter(zip(ref, ref[1:]))
    return sum((a & b).values()) / max(1, sum(b.values()))
