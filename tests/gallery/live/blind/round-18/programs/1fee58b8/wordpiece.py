import unicodedata

from textgen import SYL


class WordPiece:
    """Greedy longest match over a learnt piece table."""

    def __init__(self, size):
        pieces = list("abcdefghijklmnopqrstuvwxyz") + SYL + [a + b for a in SYL for b in SYL]
        self.ids = {p: i + 4 for i, p in enumerate(pieces[: size - 4])}
        self.longest = max(map(len, self.ids))
        self.cls, self.sep, self.mask, self.pad = 0, 1, 2, 3

    def normalize(self, text):
        text = unicodedata.normalize("NFKD", text.lower())
        return "".join(c for c in text if not unicodedata.combining(c))

    def word(self, w):
        out, i = [], 0
        while i < len(w):
            for n in range(min(self.longest, len(w) - i), 0, -1):
                if w[i:i + n] in self.ids:
                    out.append(self.ids[w[i:i + n]])
                    i += n
                    break
            else:
                i += 1
        return out

    def encode(self, text, length):
        ids = [self.cls]
        for w in self.normalize(text).split():
            ids += self.word(w)
        return ids[: length - 1] + [self.sep]
