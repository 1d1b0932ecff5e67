import random


class CharBPE:
    """Character level byte-pair encoder."""

    def __init__(self, alphabet="abcdefghijklmnopqrstuvwxyz _", merges=180, seed=5):
        rng = random.Random(seed)
        self.vocab = {c: i + 1 for i, c in enumerate(alphabet)}
        self.merges = {}
        symbols = list(alphabet)
        while len(self.merges) < merges:
            pair = (rng.choice(symbols), rng.choice(symbols))
            if pair in self.merges or len(pair[0]) + len(pair[1]) > 3:
                continue
            self.merges[pair] = len(self.merges)
            joined = "".join(pair)
            self.vocab.setdefault(joined, len(self.vocab) + 1)
            symbols.append(joined)

    def __len__(self):
        return len(self.vocab) + 1

    def encode(self, text):
        parts = list(text)
        while True:
            candidates = {p for p in zip(parts, parts[1:]) if p in self.merges}
            if not candidates:
                break
            best = min(candidates, key=self.merges.__getitem__)
            merged, i = [], 0
            while i < len(parts):
                if i + 1 < len(parts) and (parts[i], parts[i + 1]) == best:
                    merged.append(parts[i] + parts[i + 1])
                    i += 2
                else:
                    merged.append(parts[i])
                    i += 1
            parts = merged
        return [self.vocab.get(p, 0) for p in parts]
