import time
from concurrent.futures import ProcessPoolExecutor, TimeoutError


def evaluate_expression(tokens):
    value = 0
    for t in tokens:
        value = (value * 31 + t) % 9973
    return value


def simplify(tokens):
    """Moves reducible factors to the front and folds neighbours that are equal."""
    current = list(tokens)
    while True:
        folded = [current[0]] + [b for a, b in zip(current, current[1:]) if a != b]
        if not any(t % 37 == 0 for t in folded):
            return folded
        current = folded[1:] + folded[:1]
        time.sleep(0.02)


def check_answer(tokens, target):
    return float(evaluate_expression(simplify(tokens)) % 10 == target)


class RewardManager:
    def __init__(self, workers=2, per_batch_timeout=6.0):
        self.workers = workers
        self.per_batch_timeout = per_batch_timeout

    def score(self, completions, targets):
        rewards = []
        with ProcessPoolExecutor(max_workers=self.workers) as pool:
            futures = [pool.submit(check_answer, c, t) for c, t in zip(completions, targets)]
            for future in futures:
                try:
                    rewards.append(future.result(timeout=self.per_batch_timeout))
                except TimeoutError:
                    future.cancel()
                    rewards.append(0.0)
        return rewards
