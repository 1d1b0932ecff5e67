"""Goes on with the climb of an earlier case: what it has answered stands, everything else is
asked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainprobe.case import Case
from trainprobe.errors import UsageError
from trainprobe.ladder.cells import Cell
from trainprobe.ladder.plan import Plan
from trainprobe.ladder.plan_evidence import plan_row
from trainprobe.ladder.running import ANSWERS, Done
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import JOB

# What makes it another command. The sizes may grow, and knobs may be added.
SAME = (
    ("argv", "command"),
    ("form", "way to launch it"),
    ("cwd", "folder"),
    ("device", "device"),
    ("nodes", "list of nodes"),
    ("dataset", "data set"),
    ("model", "model"),
)
# What an answer of the model's stress test rests on. Cases of earlier versions do not have these.
STRESSED = (
    ("sample", "sample"),
    ("bench_steps", "number of timed steps"),
    ("fuzz", "number of random configurations"),
    ("seed", "seed"),
)
STRESS = "model_stress"
OF_THE_WHOLE = frozenset({"plan", "script", "gpus", "interrupted", "ablation", "leftovers", "lint"})


def check_same(plan: Plan, case: Case) -> None:
    """Raise UsageError, in one sentence, where the case is that of another command."""
    before = next(
        (record.data for record in reversed(case.evidence) if record.kind == "plan"), None
    )
    if before is None or before.get("command") != "diagnose":
        raise UsageError(
            f"{case.name} cannot be resumed: it holds no plan.",
            "Leave --resume out to begin a new one.",
        )
    now, _ = case.redactor.data(plan_row(plan))  # as it would stand in the case, without secrets
    for key, what in SAME:
        if (_plain(before.get(key)) or None) != (_plain(now.get(key)) or None):
            shown = (
                " ".join(map(str, before[key]))
                if isinstance(before.get(key), (list, tuple))
                else before.get(key) or "none"
            )
            raise UsageError(
                f"{case.name} belongs to another {what}: {shown}.",
                "Give the same command again, or leave --resume out.",
            )
    _check_stressed(before, now, case)
    path = _path(before.get("interpreter"))
    if path and path != _path(now.get("interpreter")):
        raise UsageError(
            f"{case.name} was recorded with another Python: {path}.",
            f"Add --python {path}, or leave --resume out.",
        )


def _check_stressed(before: Mapping[str, Any], now: Mapping[str, Any], case: Case) -> None:
    """An answer about one sample or seed is none about another; what has no answer yet may be
    asked in another way.
    """
    if not any(
        record.kind == "rung"
        and record.data.get("probe") == STRESS
        and record.data.get("outcome") in ANSWERS
        for record in case.evidence
    ):
        return
    for key, what in STRESSED:
        if key in before and before[key] != now.get(key):
            shown = "the usual" if before[key] in (None, "") else before[key]
            raise UsageError(
                f"{case.name} tested the model with another {what}: {shown}.",
                "Give the same again, or leave --resume out.",
            )


def take_up(plan: Plan, case: Case) -> dict[str, Done]:
    """Return the cells of `case` that have an answer, by name, and write down which of its
    evidence counts no longer.
    """
    check_same(plan, case)
    done: dict[str, Done] = {}
    void = _void_before(case)
    for record in case.evidence:
        if (
            record.kind == "rung"
            and record.id not in void
            and record.data.get("outcome") in ANSWERS
        ):
            cell = _cell(record.data)
            if cell is not None:
                done[record.cell] = Done(cell, str(record.data["outcome"]), record.data)
    unanswered = [
        item.id for item in case.evidence if item.id not in void and not _stands(item, done)
    ]
    case.add(
        "resumed",
        subject=JOB,
        source="ladder",
        data={"void": sorted({*void, *unanswered}, key=_number), "kept": sorted(done)},
    )
    return done


def _stands(evidence: Evidence, done: Mapping[str, Done]) -> bool:
    """Evidence of a cell stands with its answer; that of the whole climb is written anew."""
    return (
        evidence.cell in done
        if evidence.cell
        else evidence.kind not in OF_THE_WHOLE and evidence.kind != "cell.measures"
    )


def _void_before(case: Case) -> set[str]:
    return {
        str(each)
        for record in case.evidence
        if record.kind == "resumed"
        for each in record.data.get("void") or ()
    }


def _cell(data: Mapping[str, Any]) -> Cell | None:
    nproc, rows = data.get("nproc"), data.get("rows")
    if not isinstance(nproc, int) or not (rows is None or isinstance(rows, int)):
        return None
    return Cell(
        nproc,
        rows,
        str(data.get("knob") or ""),
        str(data.get("of_cell") or ""),
        str(data.get("host") or ""),
    )


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, (list, tuple)) else value


def _path(interpreter: Any) -> str:
    return str(interpreter.get("path", "")) if isinstance(interpreter, Mapping) else ""


def _number(name: str) -> tuple[int, str]:
    return (int(name[1:]) if name[1:].isdecimal() else 0), name
