"""Reward functions; no torch here, so that pool workers start fast."""


def score_format(tokens):
    return 1.0 if tokens and tokens[-1] % 2 == 0 else 0.0


def score_match(tokens, answer):
    m, n = len(tokens), len(answer)
    row = [0] * (n + 1)
    for i in range(m):
        prev = 0
        for j in range(n):
            cur = row[j + 1]
            row[j + 1] = prev + 1 if tokens[i] == answer[j] else max(row[j + 1], row[j])
            prev = cur
    return row[n] / max(n, 1)


def score_chunk(chunk):
    return [score_match(t, a) + 0.1 * score_format(t) for t, a in chunk]
