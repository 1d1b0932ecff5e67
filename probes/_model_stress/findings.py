"""What a suite reports. Each row goes to the file at once, to outlive a crash of the suite."""

from __future__ import annotations

import json
import math
import os
import time
import traceback
from typing import Any, Dict, List, NoReturn

from _shared.child_program import frames_of, message_of

# stands for infinite and for nan, which JSON has no words for; evidence holds numbers below 2**63
HUGE = 1e18


class NotApplicableError(Exception):
    """This suite, or this part of it, does not apply to this model; the message says why."""


class Findings:
    """The findings of one suite. `left_s` counts down; the suite reports what it leaves out."""

    def __init__(self, path: str, deadline_s: float) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._folder = os.path.dirname(path)
        self._until = time.monotonic() + deadline_s
        self._owner = os.getpid()

    def left_s(self) -> float:
        return self._until - time.monotonic()

    @property
    def folder(self) -> str:
        """Where a suite may write files. The parent removes them, even after a kill."""
        return self._folder

    def _write(self, row: Dict[str, Any]) -> None:
        if os.getpid() != self._owner:
            # the user's code forked, and both came back: the second would do the suite once more
            os._exit(0)
        os.write(self._file, json.dumps(row, default=repr).encode("utf-8", "replace") + b"\n")

    def step(self, name: str) -> None:
        """Name what is tried next: the place to report where the suite dies or hangs."""
        self._write({"row": "step", "name": name})

    def held(
        self,
        name: str,
        value: float,
        threshold: float,
        unit: str,
        sentence: str,
        *,
        what: str = "",
        where: str = "",
        **labels: Any,
    ) -> bool:
        """Hold `value` against `threshold`; return whether it is within.

        `name` is `<property>.<what was compared>`, as `mask.ignored`: its first part decides which
        cause it may speak for. `sentence` is shown where the value is beyond. `what` is module,
        parameter, buffer, attribute, option, size or loss, and `where` its dotted name.
        """
        number = _carried(value)
        fine = number <= threshold
        row = {"row": "held", "name": name, "value": number, "threshold": threshold, "unit": unit}
        place = {"what": what, "where": where, "labels": labels}
        self._write({**row, "says": sentence, "fine": fine, **place})
        return fine

    def differs(
        self, name: str, difference: float, sentence: str, *, tolerance: float = 0.0, **place: Any
    ) -> bool:
        """Hold a difference of tensors, as `gap` gives it. `place` as for `held`."""
        return self.held(name, difference, tolerance, "of the largest value", sentence, **place)

    def counted(self, name: str, count: float, unit: str, sentence: str, **place: Any) -> bool:
        """Report `count` faults, of which there should be none. `place` as for `held`."""
        return self.held(name, count, 0, unit, sentence, **place)

    def clean(self, name: str, unit: str, **place: Any) -> None:
        """Report that a check found no fault."""
        self.held(name, 0, 0, unit, "", **place)

    def raised(
        self,
        name: str,
        error: BaseException,
        sentence: str,
        *,
        what: str = "",
        where: str = "",
        **labels: Any,
    ) -> None:
        """Report a fault that is an exception, with its frames. Arguments as for `held`."""
        labels.update(type=type(error).__name__, message=message_of(error)[:600])
        row = {"row": "held", "name": name, "value": 1.0, "threshold": 0.0, "unit": ""}
        place = {"what": what, "where": where, "labels": labels}
        frames = frames_of(traceback.extract_tb(error.__traceback__)[-30:])
        self._write({**row, "says": sentence, "fine": False, **place, "frames": frames})

    def number(self, name: str, value: float, unit: str, **labels: Any) -> None:
        """A number that is held against nothing."""
        self._write(
            {
                "row": "number",
                "name": name,
                "value": _carried(value),
                "unit": unit,
                "labels": labels,
            }
        )

    def note(self, sentence: str, *, warn: bool = False) -> None:
        """A sentence worth reading that is no finding."""
        self._write({"row": "note", "says": sentence, "warn": warn})

    def skip(self, why: str) -> NoReturn:
        """Leave the suite: it does not apply to this model."""
        raise NotApplicableError(why)

    def summary(self, sentence: str) -> None:
        """What was tried, in a few words, for the line of a suite that passes."""
        self._write({"row": "summary", "says": sentence})


def _carried(value: float) -> float:
    """The number as JSON and the evidence know it: nan and what is beyond them become HUGE."""
    return min(max(value, -HUGE), HUGE) if math.isfinite(value) else HUGE


def worst_first(rows: List[Dict[str, Any]], most: int = 12) -> List[Dict[str, Any]]:
    """Those beyond their threshold, worst first, then the largest of each name within it."""
    beyond = sorted((row for row in rows if not row["fine"]), key=_excess, reverse=True)
    within: Dict[str, Dict[str, Any]] = {}
    for row in rows:
        if row["fine"] and (
            row["name"] not in within or row["value"] > within[row["name"]]["value"]
        ):
            within[row["name"]] = row
    broken = {row["name"] for row in beyond}
    return beyond[:most] + [row for name, row in within.items() if name not in broken]


def _excess(row: Dict[str, Any]) -> float:
    return float(row["value"]) / max(float(row["threshold"]), 1e-12)


def gap(this: Any, other: Any) -> float:
    """The largest difference, relative to the second's largest value; infinite for other shapes."""
    import torch

    if this.shape != other.shape:
        return math.inf
    if this.numel() == 0:
        return 0.0
    this, other = (
        torch.view_as_real(each.detach().resolve_conj()) if each.is_complex() else each.detach()
        for each in (this, other)
    )
    if this.shape != other.shape:
        return math.inf
    first, second = this.to(torch.float64).cpu(), other.to(torch.float64).cpu()
    if not bool(torch.equal(torch.isfinite(first), torch.isfinite(second))):
        return math.inf
    fine = torch.isfinite(second)
    if not bool(fine.any()):
        return 0.0
    scale = float(second[fine].abs().max())
    return float((first[fine] - second[fine]).abs().max()) / max(scale, 1e-6)
