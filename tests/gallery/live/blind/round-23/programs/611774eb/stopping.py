import lightning as L


class PlateauGuard(L.Callback):
    """Ends training once the smoothed training error has reached the goal."""

    def __init__(self, monitor="train/mae", goal=0.3, decay=0.9, min_steps=40):
        self.monitor = monitor
        self.goal = goal
        self.decay = decay
        self.min_steps = min_steps
        self.smoothed = None

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        value = trainer.callback_metrics.get(self.monitor)
        if value is None:
            return
        value = float(value)
        self.smoothed = value if self.smoothed is None else self.decay * self.smoothed + (1 - self.decay) * value
        if trainer.global_step >= self.min_steps and self.smoothed < self.goal:
            trainer.should_stop = True

    def state_dict(self):
        return {"smoothed": self.smoothed}

    def load_state_dict(self, state):
        self.smoothed = state["smoothed"]
