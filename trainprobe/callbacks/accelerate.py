"""For accelerate: `say_steps(accelerator)` behind `accelerator.prepare(...)`."""

from __future__ import annotations

from typing import Any

from trainprobe.heartbeat import step

__all__ = ["say_steps"]


def say_steps(accelerator: Any) -> Any:
    """Have each `accelerator.backward` that ends a step say so, and return the accelerator.

    With accumulated gradients the backward passes in between are none.
    """
    backward = accelerator.backward

    def backward_and_say(*args: Any, **kwargs: Any) -> None:
        backward(*args, **kwargs)
        if getattr(accelerator, "sync_gradients", True):
            step()

    accelerator.backward = backward_and_say
    return accelerator
