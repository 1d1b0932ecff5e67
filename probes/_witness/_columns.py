"""Part of the witness: which columns transformers' Trainer really takes away from the data, and
which it leaves.

Its `_remove_unused_columns` (a `datasets.Dataset`) and `_get_collator_with_removed_columns` (any
other data: its samples lose what is not kept) both read
`self._signature_columns` right before, in 4.30 as in 5.x. That attribute is watched, so that no
frame of ours comes into the program's stacks.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as typing's, which takes 3 ms to import
if TYPE_CHECKING:
    from typing import Any, Callable

_NAME = "_signature_columns"
_MOST = 8  # data sets; a Trainer that evaluates again asks again


def watch(module: Any, tell: Callable[..., None], guarded: Callable[..., Any]) -> None:
    """Watch `Trainer._signature_columns` of the module transformers.trainer."""
    removing, wrapping = (
        getattr(module.Trainer, name).__code__
        for name in ("_remove_unused_columns", "_get_collator_with_removed_columns")
    )
    reported: list[Any] = []

    def asked(columns_kept: Any, frame: Any) -> None:
        if columns_kept is None or frame.f_code not in (removing, wrapping):
            return
        variables = frame.f_locals
        columns = list(variables["dataset"].column_names) if frame.f_code is removing else None
        fields = {
            "removed": None
            if columns is None
            else [name for name in columns if name not in columns_kept],
            "kept": list(columns_kept)
            if columns is None
            else [name for name in columns if name in columns_kept],
            "of": variables.get("description") or "",
        }
        if fields not in reported and len(reported) < _MOST:
            reported.append(fields)
            tell(
                "note",
                "columns.removed",
                says="The Trainer leaves out columns that the model does not take.",
                **fields,
            )

    class Kept:
        def __get__(self, trainer: Any, kind: Any = None) -> Any:
            columns_kept = _own(trainer)
            guarded(asked)(columns_kept, sys._getframe(1))
            return columns_kept

        def __set__(self, trainer: Any, columns_kept: Any) -> None:
            trainer.__dict__[_NAME] = columns_kept

        def __delete__(self, trainer: Any) -> None:
            _own(trainer)
            del trainer.__dict__[_NAME]

    setattr(module.Trainer, _NAME, Kept())


def _own(trainer: Any) -> Any:
    """The Trainer's own attribute; AttributeError where it has none, as without us."""
    try:
        return trainer.__dict__[_NAME]
    except (AttributeError, KeyError):
        raise AttributeError(_NAME) from None
