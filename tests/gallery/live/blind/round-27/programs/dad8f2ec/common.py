import os
import time
from pathlib import Path

import torch
from torch import nn

RUN_DIR = Path(os.environ.get("RUN_DIR", "/tmp/rl_run"))


def build_policy():
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))


def broadcast_dir(step):
    path = RUN_DIR / "broadcasts" / f"step_{step}"
    path.mkdir(parents=True, exist_ok=True)
    return path


def rollout_path(step):
    path = RUN_DIR / "rollouts"
    path.mkdir(parents=True, exist_ok=True)
    return path / f"step_{step}.pt"


def wait_for_path(path, interval=0.2):
    while not path.exists():
        time.sleep(interval)


def save_atomic(obj, path):
    tmp = path.with_suffix(".tmp")
    torch.save(obj, tmp)
    tmp.rename(path)
