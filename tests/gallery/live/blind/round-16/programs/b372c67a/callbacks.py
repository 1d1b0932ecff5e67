import gc
import os
import queue
import shutil
import threading

from transformers import TrainerCallback


class ScheduledGC(TrainerCallback):
    """Turns automatic collection off and collects at the same steps on all processes."""

    def __init__(self, every):
        self.every = every

    def on_train_begin(self, args, state, control, **kwargs):
        gc.disable()
        gc.collect()

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step % self.every == 0:
            gc.collect(1)

    def on_train_end(self, args, state, control, **kwargs):
        gc.enable()


class CheckpointMirror(TrainerCallback):
    """Copies finished checkpoints to a second directory from a background thread."""

    def __init__(self, target):
        self.target = target
        self.jobs = queue.Queue()

    def on_train_begin(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            threading.Thread(target=self._work, name="mirror", daemon=True).start()

    def _work(self):
        while True:
            path = self.jobs.get()
            if path is None:
                return
            shutil.rmtree(self.target, ignore_errors=True)
            try:
                shutil.copytree(path, self.target)
            except OSError as e:
                print(f"mirror: {e}", flush=True)

    def on_save(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            self.jobs.put(os.path.join(args.output_dir, f"checkpoint-{state.global_step}"))

    def on_train_end(self, args, state, control, **kwargs):
        self.jobs.put(None)
