"""For Lightning: `Trainer(..., callbacks=[TrainprobeCallback()])`."""

from __future__ import annotations

from typing import Any, Optional

try:
    from lightning.pytorch import Callback
except ImportError:  # the older name of the same package
    from pytorch_lightning import Callback

from trainprobe.heartbeat import phase, step

__all__ = ["TrainprobeCallback"]


class TrainprobeCallback(Callback):
    """Says each batch of the training, and when it validates or saves."""

    def __init__(self) -> None:
        self._validates: Optional[phase] = None

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        """A batch is done; with accumulated gradients several make one step of the optimizer."""
        step()

    def on_validation_start(self, *_: Any) -> None:
        """The validation begins."""
        if self._validates is None:
            self._validates = phase("validation").__enter__()

    def on_validation_end(self, *_: Any) -> None:
        """The validation is over."""
        if self._validates is not None:
            self._validates.__exit__(None, None, None)
            self._validates = None

    def on_train_end(self, *_: Any) -> None:
        """No more steps."""
        phase("after training").__enter__()
