"""Runs the checks of a readiness probe one after another, each under its own name, so that one that
hangs or breaks costs only its own answer.

A check reports through `Results`. A check that raises, or reports nothing, is `unknown`.
Environment: TRAINPROBE_SLOT (step), TRAINPROBE_BUDGET (quick), TRAINPROBE_THRESHOLDS (JSON {check:
number}), TRAINPROBE_NPROC, TRAINPROBE_WORLD, TRAINPROBE_NODES, TRAINPROBE_PATHS. Flags: --list,
--root DIR.
"""

from __future__ import annotations

import json
import os
import sys
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    NoReturn,
    Sequence,
    Tuple,
)

import _emit

BUDGETS = ("quick", "standard", "deep")
STEP = ("step",)
# about the node alone; touches nothing of a job
ADMIN = ("step", "prolog", "epilog", "healthcheck")


Row = Tuple[str, str, Any, str, str]  # check, status, value, sentence, fix


class Launch(NamedTuple):
    """The planned launch: ranks on this host, ranks in all, node names, folders that the job
    needs; and the root below which /proc, /sys and /etc are read.
    """

    nproc: int
    world: int
    nodes: Tuple[str, ...]
    paths: Tuple[str, ...]
    root: str
    slot: str
    budget: str


class Results:
    """The results of the checks so far. `states` holds the last state of each check id."""

    def __init__(self) -> None:
        self.states: Dict[str, str] = {}
        self._thresholds = thresholds()

    def threshold(self, check: str, default: float) -> float:
        """The site's threshold for this check, else ours."""
        return self._thresholds.get(check, default)

    def add(self, check: str, state: str, sentence: str, value: Any = None, **more: Any) -> None:
        """Report one check. A fix is reported only with a warning or a failure."""
        if state in ("ok", "skip", "unknown"):
            more.pop("fix", None)
        if check in self._thresholds and "threshold" in more:
            more["source"] = "the site's own setting (thresholds in site.yaml)"
        self.states[check] = state
        _emit.check(check, state, sentence, value, **more)


class Check(NamedTuple):
    """One question. `ids` are all the check ids that `look` may report."""

    ids: Tuple[str, ...]
    look: Callable[[Launch, Results], None]
    slots: Tuple[str, ...] = STEP
    budget: str = "quick"


def report(groups: Mapping[str, Iterable[Row]]) -> List[Row]:
    """Report the rows of each group, looked for under a phase of its name; return all of them."""
    reported: List[Row] = []
    for name, rows in groups.items():
        with _emit.phase(name):
            for row in rows:
                check, status, value, sentence, fix = row
                fix = "" if status == "ok" else fix
                _emit.check(check, status, sentence, value, fix=fix)
                reported.append(row)
    return reported


def planned_nodes() -> Tuple[str, ...]:
    """The node names in TRAINPROBE_NODES."""
    return tuple(name for name in os.environ.get("TRAINPROBE_NODES", "").split(",") if name)


def thresholds() -> Dict[str, float]:
    """The site's thresholds by check id; values that are no number are ignored."""
    try:
        found = json.loads(os.environ.get("TRAINPROBE_THRESHOLDS") or "{}")
    except ValueError:
        return {}
    return {
        str(name): float(value)
        for name, value in (found.items() if isinstance(found, dict) else ())
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def run(checks: Sequence[Check], description: str, all_good: str) -> NoReturn:
    """Run the checks of this slot and budget; `no` names the failed ones, `yes` says `all_good`."""
    parser = _emit.Parser(description=description)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--root", default="/")
    flags = parser.parse_args(sys.argv[1:])
    launch = _launch(flags.root)
    if flags.list:
        rows = [{"ids": item.ids, "slots": item.slots, "budget": item.budget} for item in checks]
        _emit.say(json.dumps(rows))
        raise SystemExit(0)
    results = Results()
    for item in checks:
        if launch.slot not in item.slots:
            _leave_out(item, f"only with --slot {'|'.join(item.slots)}")
        elif BUDGETS.index(item.budget) > BUDGETS.index(launch.budget):
            _leave_out(item, f"only with --{item.budget}")
        else:
            _run_one(item, launch, results)
    failed = [name for name, state in results.states.items() if state == "fail"]
    # at once: a forked child may still hang in the kernel
    if failed:
        _emit.result("no", f"Failed: {', '.join(failed)}.", at_once=True)
    _emit.result("yes", all_good, at_once=True)


def _launch(root: str) -> Launch:
    slot = os.environ.get("TRAINPROBE_SLOT") or "step"
    budget = os.environ.get("TRAINPROBE_BUDGET") or "quick"
    if budget not in BUDGETS:
        _emit.result("cannot", f"TRAINPROBE_BUDGET={budget!r} is none of {', '.join(BUDGETS)}.")
    nproc = _emit.number_from_environment("TRAINPROBE_NPROC", 1, 1)
    nodes = planned_nodes()
    world = _emit.number_from_environment("TRAINPROBE_WORLD", nproc * max(1, len(nodes)), 1)
    paths = dict.fromkeys(filter(None, os.environ.get("TRAINPROBE_PATHS", "").split(":")))
    return Launch(nproc, world, nodes, tuple(paths), root, slot, budget)


def _leave_out(item: Check, why: str) -> None:
    for name in item.ids:
        _emit.emit("dropped", check=name, says=f"{name} is left out: {why}")


def _run_one(item: Check, launch: Launch, results: Results) -> None:
    before = set(results.states)
    why = "gave no answer."
    with _emit.phase(item.ids[0] if item.ids else "values") as fields:
        try:
            item.look(launch, results)
        except Exception as error:  # a strange /proc, /sys or driver must not stop other checks
            why = f"could not be looked at: {type(error).__name__}: {error}"[:500]
        for check in [check for check in item.ids if check not in results.states]:
            results.add(check, "unknown", f"{check} {why}")
        strange = sorted(set(results.states) - before - set(item.ids))
        fields.update({"strange": strange} if strange else {})


def value(name: str, what: Any) -> None:
    """Report a value by which nodes are compared; None and "" are not reported."""
    if what is not None and what != "":
        _emit.emit("value", name=name, value=what)
