import queue
import threading
import time

import torch
import torch.distributed as dist

from policy import build_policy


class Generator:
    def __init__(self, rank, prompts, results, pause, weight_group):
        self.rank, self.prompts, self.results, self.pause = rank, prompts, results, pause
        self.weight_group = weight_group
        self.policy = build_policy()
        self.lock = threading.Lock()
        self.version = 0
        self.receiver = threading.Thread(target=self._receive_weights, daemon=True)
        self.receiver.start()

    def _receive_weights(self):
        while True:
            fresh = [torch.empty_like(p) for p in self.policy.parameters()]
            for t in fresh:
                dist.broadcast(t, 0, group=self.weight_group)
            with self.lock, torch.no_grad():
                for p, t in zip(self.policy.parameters(), fresh):
                    p.copy_(t)
                self.version += 1

    def serve(self):
        while True:
            self.pause.wait()
            try:
                seed, length = self.prompts.get(timeout=30)
            except queue.Empty:
                continue
            gen = torch.Generator().manual_seed(seed)
            obs = torch.randn(8, 16, generator=gen)
            for _ in range(length):
                with self.lock, torch.no_grad():
                    self.policy(obs)
                time.sleep(0.004)
            self.results.put((obs.numpy(), float(obs.mean()), self.version))
