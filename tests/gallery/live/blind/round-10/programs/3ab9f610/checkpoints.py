import logging
import shutil
from pathlib import Path

import torch

logger = logging.getLogger(__name__)


class CheckpointStore:
    def __init__(self, accelerator, root, keep=1):
        self.accelerator = accelerator
        self.root = Path(root)
        self.keep = keep
        self.root.mkdir(parents=True, exist_ok=True)

    def _prune(self, newest):
        old = sorted(d for d in self.root.glob("step-*") if d != newest)
        for d in old[: max(0, len(old) - self.keep + 1)]:
            shutil.rmtree(d)

    def _write(self, step, model, optimizer):
        target = self.root / f"step-{step:07d}"
        target.mkdir()
        torch.save(model.state_dict(), target / "model.pt")
        torch.save(optimizer.state_dict(), target / "optimizer.pt")
        self._prune(target)
        latest = self.root / "latest"
        if latest.exists():
            latest.unlink()
        latest.symlink_to(target.name, target_is_directory=True)

    def save(self, step, model, optimizer):
        try:
            if self.accelerator.is_main_process:
                self._write(step, self.accelerator.unwrap_model(model), optimizer)
            self.accelerator.wait_for_everyone()
        except OSError as e:
            logger.warning("checkpoint at step %d not complete: %s", step, e)
