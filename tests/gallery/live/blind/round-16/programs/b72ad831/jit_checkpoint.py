import os
import signal

from transformers import TrainerCallback


class JITCheckpointCallback(TrainerCallback):
    """Saves and stops at the next step boundary once the scheduler asks for it."""

    def __init__(self, output_dir):
        self.output_dir = output_dir
        self.requested = False

    def _on_signal(self, signum, frame):
        self.requested = True

    def on_train_begin(self, args, state, control, **kwargs):
        signal.signal(signal.SIGTERM, self._on_signal)
        return control

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 5 and state.is_world_process_zero:
            open(os.path.join(self.output_dir, "started"), "w").close()
        if self.requested:
            control.should_save = True
            control.should_training_stop = True
        return control
