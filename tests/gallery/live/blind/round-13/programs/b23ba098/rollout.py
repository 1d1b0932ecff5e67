import logging
import queue
import random
from concurrent.futures import ThreadPoolExecutor

import torch

logger = logging.getLogger("rollout")

VOCAB = 48
EOS = 0


CONTEXT = 20


class Prompts:
    """Endless synthetic prompts of geometric length, cut to the context."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def __next__(self):
        n = min(4 + int(self.rng.expovariate(0.38)), CONTEXT)
        return [self.rng.randrange(1, VOCAB) for _ in range(n)]


class RolloutWorker:
    """Samples groups of completions in the background and puts scored groups into a queue."""

    def __init__(self, policy, rollout_queue, group_size=6, max_new=12, seed=0):
        self.policy = policy
        self.queue = rollout_queue
        self.group_size, self.max_new = group_size, max_new
        self.prompts = Prompts(seed)
        self.pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rollout")
        self.version = 0
        self.running = False

    def start(self):
        self.running = True
        self.future = self.pool.submit(self._loop)

    def stop(self):
        self.running = False

    @torch.no_grad()
    def _generate(self, prompt):
        ids = torch.tensor([prompt] * self.group_size)
        for _ in range(min(self.max_new, CONTEXT - len(prompt))):
            probs = self.policy(ids)[:, -1].softmax(-1)
            probs[:, EOS] = 0
            ids = torch.cat([ids, torch.multinomial(probs, 1)], 1)
        return ids[:, len(prompt):].tolist()

    def _score(self, prompt, completion):
        hits = sum(t in prompt for t in completion)
        return hits / len(completion)

    def _loop(self):
        while self.running:
            prompt = next(self.prompts)
            completions = self._generate(prompt)
            rewards = torch.tensor([self._score(prompt, c) for c in completions])
            adv = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
            self.queue.put({"prompt": prompt, "completions": completions, "adv": adv,
                            "reward": float(rewards.mean()), "version": self.version})


class RolloutQueueDataset(torch.utils.data.IterableDataset):
    def __init__(self, rollout_queue, version_fn, max_staleness=40, timeout=20.0):
        self.queue, self.version_fn = rollout_queue, version_fn
        self.max_staleness, self.timeout = max_staleness, timeout

    def __iter__(self):
        while True:
            try:
                item = self.queue.get(timeout=self.timeout)
            except queue.Empty:
                logger.warning("no rollouts for %.0fs, retrying", self.timeout)
                continue
            if self.version_fn() - item["version"] > self.max_staleness:
                continue
            yield item
