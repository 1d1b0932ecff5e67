"""Waits for checkpoints of the policy and writes a reward for each."""

import json
import sys
import time
from pathlib import Path

import torch

run = Path(sys.argv[1])
done = set()
while not (run / "finished").exists():
    for path in sorted(run.glob("policy-*.ckpt")):
        if path.name not in done:
            weights = torch.load(path, weights_only=True)
            reward = float(sum(each.abs().mean() for each in weights.values()))
            number = path.stem.rpartition("-")[2]
            (run / f"reward-{number}.json").write_text(json.dumps({"reward": reward}))
            done.add(path.name)
    time.sleep(0.5)
