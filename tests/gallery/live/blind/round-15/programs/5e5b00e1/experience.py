import random

import torch


class Experience:
    """Sampled answers with their token ids and per-token advantages."""

    def __init__(self, capacity, answer_len, vocab, seed):
        self.rng = random.Random(seed)
        self.capacity, self.answer_len, self.vocab = capacity, answer_len, vocab
        self.rows = []

    def warm_up(self):
        rr = self.rng.randrange
        while len(self.rows) < self.capacity:
            s = rr(self.vocab)
            self.rows.append([len(self.rows) % 997, [s, (s + 3) % self.vocab], [s & 1, 1]])

    def sample(self, n):
        ids = torch.empty(n, self.answer_len, dtype=torch.long)
        adv = torch.empty(n)
        for i in range(n):
            prompt, (a, b), (x, y) = self.rows[self.rng.randrange(len(self.rows))]
            ids[i] = (a + (b - a) * torch.arange(self.answer_len) + prompt) % self.vocab
            adv[i] = x - 0.5 * y
        return ids, adv

    def add(self, prompt, tokens, scores):
        self.rows[self.rng.randrange(len(self.rows))] = [prompt, tokens, scores]
