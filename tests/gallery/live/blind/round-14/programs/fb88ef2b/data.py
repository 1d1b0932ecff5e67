import random

WORDS = "the a small large river house walks runs over under old new green quiet engine letter opens closes and or".split()


class Translations:
    """Sentence pairs; the validation part is dealt out by source file, so ranks hold different amounts."""

    def __init__(self, rank, world, vocab=256):
        self.rng = random.Random(50 + rank)
        self.vocab = vocab
        files = [90, 430, 80, 70, 380, 60]
        self.valid = []
        for i, n in enumerate(files):
            if i % world == rank:
                self.valid += [self._pair(self.rng.randint(8, 24)) for _ in range(n)]

    def _pair(self, n):
        return [self.rng.randrange(1, self.vocab) for _ in range(n)]

    def batch(self, size, length):
        return [self._pair(length) for _ in range(size)]

    def detokenize(self, ids):
        return " ".join(WORDS[i % len(WORDS)] for i in ids)
