import json
import os
import subprocess
import sys
import tempfile

import torch
from lightning.pytorch.callbacks import Callback


class CaptionScorer(Callback):
    """Decodes the growing replay set and scores it with the official script."""

    def __init__(self, every_n_steps=25, rows_per_eval=150):
        self.every_n_steps = every_n_steps
        self.rows_per_eval = rows_per_eval
        self.folder = tempfile.mkdtemp(prefix="captions_")

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.global_step % self.every_n_steps:
            return
        if trainer.is_global_zero:
            path = self._write_predictions(trainer.global_step, pl_module)
            scores = self._run_scorer(path)
            print(f"step {trainer.global_step} samples {len(scores)} "
                  f"p1 {sum(s['p1'] for s in scores) / len(scores):.3f}", flush=True)
        trainer.strategy.barrier("caption_eval")

    @torch.no_grad()
    def _write_predictions(self, step, pl_module):
        g = torch.Generator().manual_seed(0)
        rows = self.rows_per_eval * (step // self.every_n_steps)
        refs = torch.randint(0, pl_module.vocab, (rows, 10), generator=g)
        preds = pl_module.model(refs).argmax(-1)
        path = os.path.join(self.folder, f"pred_{step}.jsonl")
        with open(path, "w") as f:
            for i in range(rows):
                f.write(json.dumps({"id": i, "pred": preds[i].tolist(), "ref": refs[i].tolist()}) + "\n")
        return path

    def _run_scorer(self, path):
        proc = subprocess.Popen([sys.executable, "score_captions.py", path],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in proc.stderr:
            if "error" in line.lower():
                print(line.rstrip(), flush=True)
        scores = [json.loads(line) for line in proc.stdout]
        proc.wait()
        return scores
