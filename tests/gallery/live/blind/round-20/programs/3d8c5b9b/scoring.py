import queue
import threading

import numpy as np


class ScoringPool:
    """Scores sampled responses in background threads, window by window."""

    def __init__(self, workers=2, window=48):
        self.window = window
        self.tasks = queue.Queue()
        self.results = queue.Queue()
        self.weights = np.random.default_rng(5).standard_normal((64, 64)) / 8
        for i in range(workers):
            threading.Thread(target=self._work, name=f"scorer-{i}", daemon=True).start()

    def _score(self, tokens):
        emb = np.cos(np.outer(tokens, np.arange(1, 65)) / 64.0)
        return float(np.tanh(emb @ self.weights).mean())

    def _work(self):
        while True:
            idx, tokens = self.tasks.get()
            for start in range(0, len(tokens), self.window):
                self.results.put((idx, self._score(tokens[start:start + self.window])))
            self.tasks.task_done()

    def score(self, responses):
        for idx, tokens in enumerate(responses):
            self.tasks.put((idx, tokens))
        rewards = [0.0] * len(responses)
        for _ in responses:
            idx, value = self.results.get()
            rewards[idx] += value
            self.results.task_done()
        self.results.join()
        return rewards
