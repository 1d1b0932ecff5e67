"""Makes the checks of one program, one after another, each under its own name, so that one that hangs or breaks is told from the others.

A check says what it saw through `Told`. One that raises is `unknown`, as is one that says nothing. Environment: TRAINPROBE_SLOT (step), TRAINPROBE_BUDGET
(quick), TRAINPROBE_THRESHOLDS (JSON {check: number}), TRAINPROBE_NPROC, TRAINPROBE_WORLD, TRAINPROBE_NODES, TRAINPROBE_PATHS. Flags: --list, --root DIR.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Callable, Dict, List, NamedTuple, NoReturn, Sequence, Tuple

import _emit

BUDGETS = ("quick", "standard", "deep")
STEP = ("step",)
ADMIN = ("step", "prolog", "epilog", "healthcheck")  # what is asked of the node alone, and touches nothing of a job


class Asked(NamedTuple):
    """What the launch plans: ranks on this host, ranks in all, the nodes' names, folders that the job needs, and the root of /proc, /sys and /etc."""

    nproc: int
    world: int
    nodes: Tuple[str, ...]
    paths: Tuple[str, ...]
    root: str
    slot: str
    budget: str


class Told:
    """What the checks said so far. `states` holds the worst state by id."""

    def __init__(self, thresholds: Dict[str, float]) -> None:
        self.states: Dict[str, str] = {}
        self._thresholds = thresholds

    def threshold(self, check: str, default: float) -> float:
        """The number that the site sets for this check, else ours."""
        return self._thresholds.get(check, default)

    def say(self, check: str, state: str, says: str, value: Any = None, **more: Any) -> None:
        """Report one check. A fix is told only where there is something to mend."""
        if state in ("ok", "skip", "unknown"):
            more.pop("fix", None)
        if check in self._thresholds and "threshold" in more:
            more["source"] = "the site's own setting (thresholds in site.yaml)"
        self.states[check] = state
        _emit.check(check, state, says, value, **more)


class Check(NamedTuple):
    """One question. `ids` are all ids that it may say; `look` asks it."""

    ids: Tuple[str, ...]
    look: Callable[[Asked, Told], None]
    slots: Tuple[str, ...] = STEP
    budget: str = "quick"


def asked_of(argv: Sequence[str], about: str) -> Tuple[Asked, bool]:
    """Read flags and environment; a bad one answers `cannot`."""
    parser = _emit.Parser(description=about)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--root", default="/")
    given = parser.parse_args(argv)
    slot, budget = (os.environ.get("TRAINPROBE_SLOT") or "step"), (os.environ.get("TRAINPROBE_BUDGET") or "quick")
    if budget not in BUDGETS:
        _emit.result("cannot", f"TRAINPROBE_BUDGET={budget!r} is none of {', '.join(BUDGETS)}.")
    nproc = _emit.number_from_environment("TRAINPROBE_NPROC", 1, 1)
    nodes = tuple(name for name in os.environ.get("TRAINPROBE_NODES", "").split(",") if name)
    paths = tuple(dict.fromkeys(path for path in os.environ.get("TRAINPROBE_PATHS", "").split(":") if path))
    return Asked(nproc, _emit.number_from_environment("TRAINPROBE_WORLD", nproc * max(1, len(nodes)), 1), nodes, paths, given.root, slot, budget), given.list


def thresholds() -> Dict[str, float]:
    """Numbers by check id; what is no number is left out."""
    try:
        given = json.loads(os.environ.get("TRAINPROBE_THRESHOLDS") or "{}")
    except ValueError:
        return {}
    rows = given.items() if isinstance(given, dict) else ()
    return {str(name): float(value) for name, value in rows if isinstance(value, (int, float)) and not isinstance(value, bool)}


def make(checks: Sequence[Check], about: str, fit: str) -> NoReturn:
    """Make the checks that belong to this slot and budget, then answer: `no` names what failed, `fit` is said where nothing did."""
    asked, only_list = asked_of(sys.argv[1:], about)
    if only_list:
        _emit.say(json.dumps([{"ids": one.ids, "slots": one.slots, "budget": one.budget} for one in checks]))
        raise SystemExit(0)
    told = Told(thresholds())
    for one in checks:
        if asked.slot not in one.slots:
            _left_out(one, f"it is not made in the slot {asked.slot}")
        elif BUDGETS.index(one.budget) > BUDGETS.index(asked.budget):
            _left_out(one, f"it belongs to the budget {one.budget}")
        else:
            _look(one, asked, told)
    failed = [name for name, state in told.states.items() if state == "fail"]
    _emit.result("no" if failed else "yes", f"Failed: {', '.join(failed)}." if failed else fit, at_once=True)  # a forked look may still hang in the kernel


def _left_out(one: Check, why: str) -> None:
    for name in one.ids:
        _emit.emit("dropped", check=name, says=f"{name} is left out: {why}")


def _look(one: Check, asked: Asked, told: Told) -> None:
    before = set(told.states)
    began = time.monotonic()
    name = one.ids[0] if one.ids else "values"
    _emit.emit("phase.begin", name=name)
    try:
        one.look(asked, told)
    except Exception as error:  # what a strange /proc, /sys or driver does to one check must not take the others with it
        for check in [check for check in one.ids if check not in told.states]:
            told.say(check, "unknown", f"{check} could not be looked at: {type(error).__name__}: {error}"[:500])
    for check in [check for check in one.ids if check not in told.states]:
        told.say(check, "unknown", f"{check} gave no answer.")
    strange: List[str] = sorted(set(told.states) - before - set(one.ids))
    _emit.emit("phase.end", name=name, took_s=round(time.monotonic() - began, 6), **({"strange": strange} if strange else {}))


def value(name: str, what: Any) -> None:
    """Tell one value that nodes are compared by; nothing is told for what is not there."""
    if what is not None and what != "":
        _emit.emit("value", name=name, value=what)
