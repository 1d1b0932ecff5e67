import queue
import threading

import torch


class Env:
    """Noisy integrator, reward for staying close to the origin."""

    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def episode(self, policy, length):
        s = torch.randn(4, generator=self.g)
        obs, acts, rews = [], [], []
        with torch.no_grad():
            for _ in range(length):
                a = policy(s) + 0.1 * torch.randn(2, generator=self.g)
                obs.append(s)
                acts.append(a)
                s = 0.95 * s + 0.1 * torch.cat([a, a]) + 0.05 * torch.randn(4, generator=self.g)
                rews.append(-s.pow(2).mean())
        return torch.stack(obs), torch.stack(acts), torch.stack(rews)


class Limiter:
    """Caps the environments in use, for training and evaluation together."""

    def __init__(self, slots):
        self._sem = threading.BoundedSemaphore(slots)

    def acquire(self):
        self._sem.acquire()

    def release(self):
        self._sem.release()


class RolloutPool:
    def __init__(self, policy, limiter, n_threads, length, seed):
        self.policy, self.limiter, self.length = policy, limiter, length
        self.ready = queue.Queue()
        for i in range(n_threads):
            threading.Thread(target=self._work, args=(Env(seed * 97 + i),), name=f"rollout-{i}", daemon=True).start()

    def _work(self, env):
        while True:
            self.limiter.acquire()
            self.ready.put(env.episode(self.policy, self.length))

    def take(self, n):
        batch = []
        for _ in range(n):
            batch.append(self.ready.get())
            self.limiter.release()
        return batch
