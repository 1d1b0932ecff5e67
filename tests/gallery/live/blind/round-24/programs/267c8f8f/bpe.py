from collections import Counter


def get_pairs(word):
    return set(zip(word, word[1:]))


class BytePairEncoder:
    def __init__(self, corpus, num_merges=160):
        self.ranks = {}
        words = Counter(" ".join(corpus).split())
        table = {tuple(w): c for w, c in words.items()}
        for rank in range(num_merges):
            pairs = Counter()
            for word, count in table.items():
                for pair in zip(word, word[1:]):
                    pairs[pair] += count
            if not pairs:
                break
            best = pairs.most_common(1)[0][0]
            self.ranks[best] = rank
            table = {self._merge(w, best): c for w, c in table.items()}
        self.cache = {}

    @staticmethod
    def _merge(word, pair):
        out, i = [], 0
        while i < len(word):
            if i + 1 < len(word) and (word[i], word[i + 1]) == pair:
                out.append(word[i] + word[i + 1])
                i += 2
            else:
                out.append(word[i])
                i += 1
        return tuple(out)

    def bpe(self, token):
        if token in self.cache:
            return self.cache[token]
        word = tuple(token)
        while len(word) > 1:
            pair = min(get_pairs(word), key=lambda p: self.ranks.get(p, float("inf")))
            if pair not in self.ranks:
                break
            word = self._merge(word, pair)
        if len(token) < 64:
            self.cache[token] = word
        return word

    def encode(self, text, vocab, max_length):
        ids = []
        for token in text.split():
            ids.extend(hash_piece(p, vocab) for p in self.bpe(token))
        return ids[:max_length]


def hash_piece(piece, vocab):
    value = 0
    for ch in piece:
        value = (value * 131 + ord(ch)) & 0xFFFFFFFF
    return value % (vocab - 1) + 1
