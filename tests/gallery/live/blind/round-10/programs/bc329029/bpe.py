"""Byte pair encoding in plain Python."""
from collections import Counter


def pairs(seq):
    return list(zip(seq, seq[1:]))


def merge(seq, pair, new):
    out, i = [], 0
    while i < len(seq):
        if i + 1 < len(seq) and (seq[i], seq[i + 1]) == pair:
            out.append(new)
            i += 2
        else:
            out.append(seq[i])
            i += 1
    return out


class Bpe:
    def __init__(self, merges):
        self.merges = merges

    @property
    def vocab_size(self):
        return 256 + len(self.merges)

    @classmethod
    def learn(cls, documents, merges):
        seqs = [list(d.encode()) for d in documents]
        table = {}
        for k in range(merges):
            counts = Counter(p for s in seqs for p in pairs(s))
            if not counts:
                break
            best = max(counts, key=lambda p: (counts[p], p))
            table[best] = 256 + k
            seqs = [merge(s, best, 256 + k) for s in seqs]
        return cls(table)

    def encode(self, text):
        seq = list(text.encode())
        for pair, new in self.merges.items():
            seq = merge(seq, pair, new)
        return seq
