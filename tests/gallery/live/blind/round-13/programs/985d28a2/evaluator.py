import time
from pathlib import Path

import numpy as np
import torch


def wait_for(path, delay=0.25, limit=20.0):
    while not path.exists():
        time.sleep(delay)
        delay = min(delay * 2, limit)


def bootstrap_f1(pred, gold, rounds=400, seed=0):
    rng = np.random.default_rng(seed)
    scores = []
    for _ in range(rounds):
        pick = rng.integers(0, len(gold), len(gold))
        p, g = pred[pick], gold[pick]
        f1 = []
        for c in range(int(gold.max()) + 1):
            tp = np.sum((p == c) & (g == c))
            f1.append(2 * tp / max(np.sum(p == c) + np.sum(g == c), 1))
        scores.append(np.mean(f1))
    return float(np.mean(scores)), np.percentile(scores, [2.5, 97.5]).round(4).tolist()


class Evaluator:
    """Scores the model on all ranks; the metric itself is computed by rank 0 from the written parts.

    Ranks meet over files, so that the accelerators stay free while the metric is computed.
    """

    def __init__(self, run_dir, rank, world, data, rounds):
        self.dir = Path(run_dir)
        self.rank, self.world, self.rounds = rank, world, rounds
        self.x, self.y = data
        self.done = self.dir / "rank0_metric_eval_done.txt"

    def part(self, r, step):
        return self.dir / f"pred_{step:06d}_{r}.npz"

    @torch.no_grad()
    def predict(self, model, step):
        model.eval()
        out = torch.cat([model(b).argmax(-1) for b in self.x[self.rank::self.world].split(256)])
        model.train()
        tmp = self.dir / f"tmp_{self.rank}.npz"
        np.savez(tmp, pred=out.numpy(), gold=self.y[self.rank::self.world].numpy())
        tmp.rename(self.part(self.rank, step))

    def run(self, model, step):
        self.predict(model, step)
        if self.rank != 0:
            wait_for(self.done)
            return None
        pred, gold = [], []
        for r in range(self.world):
            wait_for(self.part(r, step), limit=0.5)
            with np.load(self.part(r, step)) as f:
                pred.append(f["pred"])
                gold.append(f["gold"])
            self.part(r, step).unlink()
        mean, ci = bootstrap_f1(np.concatenate(pred), np.concatenate(gold), self.rounds)
        self.done.write_text(f"{step} {mean}\n")
        torch.save(model.state_dict(), self.dir / f"step_{step}.pt")
        self.done.unlink()
        return mean, ci
