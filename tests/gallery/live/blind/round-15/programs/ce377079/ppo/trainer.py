import time
from dataclasses import dataclass

import torch
import torch.distributed as dist

from .model import generate


@dataclass
class PPOConfig:
    batch_size: int = 16
    mini_batch_size: int = 4
    ppo_epochs: int = 4
    prompt_len: int = 8
    response_len: int = 12
    lr: float = 2.4e-4
    warmup_steps: int = 80
    cliprange: float = 0.2
    vf_coef: float = 0.1
    init_kl_coef: float = 0.02
    target_kl: float = 0.004
    early_stopping: bool = True


def logprobs_of(logits, ids):
    return torch.log_softmax(logits, -1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)


def gather_stats(stats):
    dist.barrier()
    for k, v in stats.items():
        v = v.clone()
        dist.all_reduce(v, op=dist.ReduceOp.SUM)
        stats[k] = v / dist.get_world_size()
    return stats


class PPOTrainer:
    def __init__(self, config, model, ref_model, optimizer, accelerator):
        self.config = config
        self.accelerator = accelerator
        self.model, self.optimizer = accelerator.prepare(model, optimizer)
        self.ref_model = ref_model.eval().requires_grad_(False)
        self.global_step = 0

    @property
    def unwrapped(self):
        return self.accelerator.unwrap_model(self.model)

    def rollout(self, prompts):
        return generate(self.unwrapped, prompts, self.config.response_len)

    def _experience(self, ids):
        q = self.config.prompt_len
        with torch.no_grad():
            logits, values = self.unwrapped(ids)
            ref_logits, _ = self.ref_model(ids)
        logp = logprobs_of(logits[:, q - 1:-1], ids[:, q:])
        ref_logp = logprobs_of(ref_logits[:, q - 1:-1], ids[:, q:])
        return logp, ref_logp, values[:, q - 1:-1]

    def step(self, ids, scores):
        cfg = self.config
        t0 = time.time()
        for group in self.optimizer.param_groups:
            group["lr"] = cfg.lr * min(1.0, (self.global_step + 1) / cfg.warmup_steps)
        old_logp, ref_logp, old_values = self._experience(ids)
        rewards = -cfg.init_kl_coef * (old_logp - ref_logp)
        rewards[:, -1] += scores
        returns = torch.flip(torch.cumsum(torch.flip(rewards, [1]), 1), [1])
        advantages = returns - old_values

        all_stats = []
        early_stop = False
        for _ in range(cfg.ppo_epochs):
            if early_stop:
                break
            perm = torch.randperm(cfg.batch_size)
            for start in range(0, cfg.batch_size, cfg.mini_batch_size):
                idx = perm[start:start + cfg.mini_batch_size]
                loss, train_stats = self.loss(
                    ids[idx], old_logp[idx], advantages[idx], returns[idx]
                )
                if cfg.early_stopping and train_stats["policy/policykl"] > 1.5 * cfg.target_kl:
                    early_stop = True
                    self.optimizer.zero_grad()
                    break
                self.optimizer.zero_grad()
                self.accelerator.backward(loss)
                self.optimizer.step()
                all_stats.append(train_stats)

        stats = {k: torch.stack([s[k] for s in all_stats]).mean() for k in all_stats[0]}
        stats["env/reward_mean"] = scores.mean()
        stats["objective/kl"] = (old_logp - ref_logp).sum(1).mean()
        stats = gather_stats(stats)
        stats["time/ppo/total"] = time.time() - t0
        self.global_step += 1
        return stats

    def loss(self, ids, old_logp, adv, returns):
        cfg = self.config
        q = cfg.prompt_len
        logits, values = self.model(ids)
        logp = logprobs_of(logits[:, q - 1:-1], ids[:, q:])
        ratio = torch.exp(logp - old_logp)
        pg = torch.max(-adv * ratio, -adv * ratio.clamp(1 - cfg.cliprange, 1 + cfg.cliprange)).mean()
        vf = 0.5 * (values[:, q - 1:-1] - returns).pow(2).mean()
        stats = {
            "loss/policy": pg.detach(),
            "loss/value": vf.detach(),
            "policy/policykl": (0.5 * (logp - old_logp) ** 2).mean().detach(),
        }
        return pg + cfg.vf_coef * vf, stats
