import copy
import os
import threading
import time

import torch
from transformers import TrainerCallback


class Pace(TrainerCallback):
    """Leaves room on the shared machine."""

    def on_substep_end(self, args, state, control, **kwargs):
        time.sleep(0.1)

    def on_step_end(self, args, state, control, **kwargs):
        time.sleep(0.1)

    def on_prediction_step(self, args, state, control, **kwargs):
        time.sleep(0.2)


class BackgroundSave(TrainerCallback):
    """Snapshots on the step, writes from a thread; the next save waits for the last one."""

    def __init__(self, folder, every):
        self.folder, self.every = folder, every
        self.writer = None

    def _write(self, state, step):
        path = os.path.join(self.folder, "weights.pt")
        torch.save(state, path + ".part")
        time.sleep(12)
        os.replace(path + ".part", path)

    def on_step_end(self, args, state, control, model=None, **kwargs):
        if not state.is_world_process_zero or state.global_step % self.every:
            return
        if self.writer is not None:
            self.writer.join()
        snapshot = copy.deepcopy(model.state_dict())
        self.writer = threading.Thread(target=self._write, args=(snapshot, state.global_step), name="writer")
        self.writer.start()


class Progress(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if state.is_world_process_zero:
            print(f"step {state.global_step} {logs}", flush=True)
