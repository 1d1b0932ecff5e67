import time

from transformers import TrainerCallback


class TimeBudgetCallback(TrainerCallback):
    """Ends training in time for the final evaluation to fit into the allocation."""

    def __init__(self, seconds):
        self.deadline = time.monotonic() + seconds

    def on_train_begin(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            print(f"training begins, {self.deadline - time.monotonic():.0f} s left", flush=True)

    def on_step_end(self, args, state, control, **kwargs):
        if time.monotonic() > self.deadline:
            control.should_training_stop = True
        return control
