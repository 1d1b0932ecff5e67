"""Rule-based math rewards, graded in worker processes with a time limit per completion."""
import logging
import re
from concurrent.futures import ProcessPoolExecutor, TimeoutError

logger = logging.getLogger(__name__)

BOXED = re.compile(r"\\boxed\{((?:[^{}]+|\{[^{}]*\})*)\}")
FRAC = re.compile(r"\\frac\{(\d+)\}\{(\d+)\}")


def normalize(text):
    match = FRAC.fullmatch(text.strip())
    if match:
        return int(match.group(1)) / int(match.group(2))
    return text.replace(" ", "")


def compute_score(completion, answer):
    match = BOXED.search(completion)
    if match is None:
        return 0.0
    return 0.1 + 0.9 * float(normalize(match.group(1)) == normalize(answer))


class MathRewardManager:
    def __init__(self, num_workers=2, timeout=3.0):
        self.num_workers = num_workers
        self.timeout = timeout

    def __call__(self, completions, answers):
        scores = []
        with ProcessPoolExecutor(max_workers=self.num_workers) as executor:
            futures = [executor.submit(compute_score, c, a) for c, a in zip(completions, answers)]
            for future in futures:
                try:
                    scores.append(future.result(timeout=self.timeout))
                except TimeoutError:
                    logger.warning("grading took longer than %.0fs, scored 0", self.timeout)
                    future.cancel()
                    scores.append(0.0)
        return scores
