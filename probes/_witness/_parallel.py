"""Part of the witness: who wraps a model into torch.nn.DataParallel, and over how many GPUs. It
watches the attribute that the constructor sets, so that no frame of ours enters a stack.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as typing's, which takes 3 ms to import
if TYPE_CHECKING:
    from typing import Any, Callable


def watch(module: Any, tell: Callable[..., None], guarded: Callable[..., Any]) -> None:
    """Watch `DataParallel.device_ids` of the module torch.nn.parallel.data_parallel."""

    def made(devices: Any, frame: Any) -> None:
        by, user = _lines(frame)
        tell(
            "note",
            "data_parallel",
            says="A model was wrapped into nn.DataParallel.",
            devices=len(devices),
            by=by,
            user=user,
        )

    class DeviceIds:
        def __get__(self, model: Any, kind: Any = None) -> Any:
            if model is None:
                return self
            try:
                return model.__dict__["device_ids"]
            except KeyError:
                raise AttributeError("device_ids") from None

        def __set__(self, model: Any, devices: Any) -> None:
            first = "device_ids" not in model.__dict__
            model.__dict__["device_ids"] = devices
            if first:
                guarded(made)(devices, sys._getframe(1))

    module.DataParallel.device_ids = DeviceIds()


def _lines(frame: Any) -> tuple[Any, Any]:
    """The nearest line outside of torch.nn, and the nearest outside of installed packages."""
    by = None
    while frame is not None:
        file = frame.f_code.co_filename
        place = {"file": file, "line": frame.f_lineno, "function": frame.f_code.co_name}
        if by is None and "/torch/nn/" not in file:
            by = place
        if "site-packages" not in file and not file.startswith(
            (f"{sys.base_prefix}/lib/python", "<")
        ):
            return by, place
        frame = frame.f_back
    return by, None
