import zlib

VOCAB = 1024


class MergeTokenizer:
    """Greedy pair merging on characters, with hashed ids."""

    def __init__(self, merges=24):
        self.merges = merges

    def _word(self, word):
        parts = list(word)
        for _ in range(self.merges):
            if len(parts) < 2:
                break
            scores = [(zlib.crc32((a + b).encode()) & 0xFFFF, i) for i, (a, b) in enumerate(zip(parts, parts[1:]))]
            best, i = min(scores)
            if best > 0xE000:
                break
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
            if len(parts) <= max(1, len(word) // 4):
                break
        return [zlib.crc32(p.encode()) % (VOCAB - 1) + 1 for p in parts]

    def __call__(self, text):
        return [t for w in text.split() for t in self._word(w)]


def augmentations(tokenizer, text, views=3):
    words = text.split()
    out = []
    for v in range(views):
        kept = [w for k, w in enumerate(words) if (k + v) % 7]
        out.append(tokenizer(" ".join(kept)))
    return out
