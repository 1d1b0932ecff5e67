import queue
import threading
import time

import torch
import torch.distributed as dist

from common import broadcast_dir, build_policy, rollout_path, save_atomic, wait_for_path

ASYNC_LEVEL = 2
EVAL_EVERY = 24


class RolloutPool:
    def __init__(self, policy):
        self.policy = policy
        self.ready = queue.Queue(maxsize=2)
        threading.Thread(target=self._generate, daemon=True).start()

    def _generate(self):
        while True:
            obs = torch.randn(32, 16)
            with torch.no_grad():
                act = torch.distributions.Categorical(logits=self.policy(obs)).sample()
            time.sleep(0.45)
            self.ready.put({"obs": obs, "act": act, "adv": torch.randn(32)})


class Orchestrator:
    def __init__(self, weight_group):
        self.policy = build_policy()
        self.weight_group = weight_group
        self.pool = RolloutPool(self.policy)
        self.step = 0
        self.ckpt_step = -1

    def update_policy(self):
        next_ckpt = self.step - ASYNC_LEVEL
        if next_ckpt <= self.ckpt_step:
            return
        path = broadcast_dir(next_ckpt)
        wait_for_path(path / "STABLE")
        (path / "READY").touch()
        for p in self.policy.parameters():
            dist.broadcast(p.data, src=0, group=self.weight_group)
        self.ckpt_step = next_ckpt

    def submit(self, batch):
        save_atomic(batch, rollout_path(self.step))
        self.step += 1

    def run_eval(self):
        correct = 0
        for _ in range(40):
            with torch.no_grad():
                correct += int((self.policy(torch.randn(64, 16)).argmax(-1) == 0).sum())
            time.sleep(0.1)
        print(f"[orchestrator] eval at step {self.step}: {correct / 2560:.3f}", flush=True)

    def run(self):
        while True:
            self.update_policy()
            if self.step and self.step % EVAL_EVERY == 0:
                self.run_eval()
                while not self.pool.ready.empty():
                    self.submit(self.pool.ready.get())
                continue
            self.submit(self.pool.ready.get())
