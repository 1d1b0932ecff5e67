import json
from pathlib import Path

import lightning as L
import torch


class MetricsFile(L.Callback):
    def __init__(self, path):
        self.path = Path(path)

    def on_train_epoch_end(self, trainer, module):
        if trainer.is_global_zero:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "a") as f:
                row = {k: float(v) for k, v in trainer.callback_metrics.items()}
                f.write(json.dumps({"epoch": trainer.current_epoch, **row}) + "\n")
        trainer.strategy.barrier()


class ConfmapViz(L.Callback):
    """Writes predicted confidence maps of a few frames as PGM images."""

    def __init__(self, dataset, folder, every=5, frames=4):
        self.dataset, self.folder, self.every, self.frames = dataset, Path(folder), every, frames

    def _render(self, module, idx):
        x, _ = self.dataset[idx]
        with torch.no_grad():
            c = module.net(x[None])[0].max(0).values.clamp(0, 1)
        return (c * 255).byte()

    def on_train_epoch_end(self, trainer, module):
        if (trainer.current_epoch + 1) % self.every:
            return
        if not trainer.is_global_zero:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for k in range(self.frames):
            im = self._render(module, k)
            name = self.folder / f"e{trainer.current_epoch:04d}_{k}.pgm"
            name.write_bytes(b"P5 %d %d 255\n" % (im.shape[1], im.shape[0]) + bytes(im.flatten().tolist()))
        trainer.strategy.barrier("viz")
