import json
import os
import tempfile
import time

import torch
from transformers import TrainerCallback


class SummaryWriter:
    def __init__(self):
        self._file = tempfile.TemporaryFile("w")

    def write(self, row):
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        time.sleep(0.012)


class ActivationWatch(TrainerCallback):
    """Activation quantiles of every block for the step after a log line."""

    def __init__(self):
        self.writer = None
        self.handles = []

    def _hook(self, name, step):
        quantiles = torch.tensor([0.01, 0.5, 0.99])

        def record(module, inputs, output):
            hidden = output[0] if isinstance(output, tuple) else output
            q = torch.quantile(hidden.detach().float().flatten()[:4096], quantiles)
            self.writer.write({"step": step, "block": name, "q": q.tolist()})

        return record

    def on_train_begin(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            self.writer = SummaryWriter()

    def on_log(self, args, state, control, model=None, **kwargs):
        if self.writer is None:
            return
        self.handles = [
            block.register_forward_hook(self._hook(f"h.{i}", state.global_step))
            for i, block in enumerate(model.transformer.h)
        ]

    def on_train_end(self, args, state, control, **kwargs):
        for handle in self.handles:
            handle.remove()
