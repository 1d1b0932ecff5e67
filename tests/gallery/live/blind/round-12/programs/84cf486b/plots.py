import json
import multiprocessing
import os
import time

from lightning.pytorch.callbacks import Callback


def render(jobs, folder):
    while True:
        job = jobs.get()
        if job is None:
            return
        width = 40
        hist = job["hist"]
        top = max(hist) or 1
        lines = ["#" * int(width * h / top) for h in hist]
        with open(os.path.join(folder, f"hist-{job['epoch']:04d}.txt"), "w") as f:
            f.write("\n".join(lines))


class HistogramReport(Callback):
    """Draws error histograms in a helper process of rank zero."""

    def __init__(self, folder):
        self.folder = folder
        self.proc = None

    def setup(self, trainer, pl_module, stage):
        if trainer.is_global_zero:
            ctx = multiprocessing.get_context("fork")
            self.jobs = ctx.SimpleQueue()
            self.proc = ctx.Process(target=render, args=(self.jobs, self.folder), daemon=True)
            self.proc.start()

    def on_validation_epoch_end(self, trainer, pl_module):
        errors = pl_module.val_errors
        if self.proc is not None and errors:
            hist = [0] * 10
            for e in errors:
                hist[min(9, int(e * 10))] += 1
            self.jobs.put({"epoch": trainer.current_epoch, "hist": hist})
        pl_module.val_errors = []

    def teardown(self, trainer, pl_module, stage):
        if self.proc is not None:
            self.jobs.put(None)
            self.proc.join()
