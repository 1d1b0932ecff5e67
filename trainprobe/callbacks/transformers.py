"""For transformers' Trainer: `Trainer(..., callbacks=[TrainprobeCallback()])`."""

from __future__ import annotations

from typing import Any, Optional

from transformers import TrainerCallback

from trainprobe.heartbeat import phase, step

__all__ = ["TrainprobeCallback"]


class TrainprobeCallback(TrainerCallback):
    """Says each step of the optimizer, and when it evaluates or has just saved.

    The Trainer has no event for the beginning of an evaluation or a checkpoint: an evaluation is
    known from its first batch on, a checkpoint from the step that asks for it until it is saved.
    """

    def __init__(self) -> None:
        self._evaluates: Optional[phase] = None
        self._saves: Optional[phase] = None

    def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> None:
        """The step is done, and says whether a checkpoint or an evaluation follows."""
        step(int(state.global_step))
        if getattr(control, "should_save", False) and self._saves is None:
            self._saves = phase("checkpoint").__enter__()

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Whatever came between two steps is over."""
        self._over()

    def on_save(self, *_: Any, **__: Any) -> None:
        """The checkpoint is written."""
        if self._saves is not None:
            self._saves.__exit__(None, None, None)
            self._saves = None

    def on_prediction_step(self, *_: Any, **__: Any) -> None:
        """A batch of an evaluation."""
        if self._evaluates is None:
            self._evaluates = phase("evaluation").__enter__()

    def on_evaluate(self, *_: Any, **__: Any) -> None:
        """The evaluation is over."""
        if self._evaluates is not None:
            self._evaluates.__exit__(None, None, None)
            self._evaluates = None

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """No more steps."""
        self._over()
        phase("after training").__enter__()

    def _over(self) -> None:
        self.on_evaluate()
        self.on_save()
