import gc
import time

from transformers import TrainerCallback


class MemoryCallback(TrainerCallback):
    """Keeps host memory flat between steps."""

    def on_step_end(self, args, state, control, **kwargs):
        gc.collect()


class SpeedCallback(TrainerCallback):
    def __init__(self, every=10):
        self.every = every
        self.last = None

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step % self.every == 0:
            now = time.time()
            if self.last is not None and state.is_world_process_zero:
                print(f"step {state.global_step} {self.every / (now - self.last):.2f} it/s", flush=True)
            self.last = now
