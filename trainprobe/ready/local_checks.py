"""The checks of this node: every check program of the budget in a process of its own, all at once,
and none beyond the hard stop.

Nothing is written to a disk: the programs write into files in memory, so a full TMPDIR or a
read-only working directory does no harm. A program that no signal can end is left behind with the
name of its open check, and nothing is started while it lives.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trainprobe.checks import BUDGETS, SLOTS, STATES, CheckSpec, catalogue
from trainprobe.ladder import events
from trainprobe.ladder.outcome import how_ended
from trainprobe.ladder.probes import built_in_folder, in_folder
from trainprobe.model.evidence import LookOutcome
from trainprobe.model.probes import ProbeSpec
from trainprobe.ready.job_python import CHECK, START_S, JobPython, ask_python
from trainprobe.ready.stuck_checks import Left, Marker, still_there
from trainprobe.system.child import Child, ChildSpec
from trainprobe.system.keeper import Keeper
from trainprobe.system.proc import read_stat
from trainprobe.system.run import run
from trainprobe.system.tree import kill_below

KIND, VALUES = "checks", "values"
HARD_STOP_S: Mapping[str, float] = {"quick": 50.0, "standard": 290.0, "deep": 1790.0}
KILL_S = 1.0  # from SIGKILL until a program counts as unkillable
CLOSE_S = 0.5
LEAST_S = 0.5
ENTER_S = 2.0
OUTPUT_BYTES = 64 * 1024
EVENTS_BYTES = 4 * 2**20
LOOK_AGAIN_S = 0.25
MOST_ROWS, MOST_VALUES, MOST_LISTED = 400, 400, 64
SAYS_CHARACTERS, VALUE_CHARACTERS, NAME_CHARACTERS = 2000, 4000, 200
JOB_PYTHON = "job_python"  # a program whose header says so speaks of the Python that runs it
OF_ROW = ("fix", "source", "severity", "who")  # what a program may know better than the catalogue


@dataclass(frozen=True)
class CheckTask:
    """What to check here.

    `stop_s` is the hard stop, killing included. `env` is added to our own environment. `folder`
    holds the check programs, "" for our own. `interpreter` runs them, "" for the Python of this
    tool. `cwd` is where they run, "" for the current folder; they run in / where it cannot be
    entered within moments. `alone` runs them without site-packages, to spare a shared disk.
    """

    budget: str = "quick"
    slot: str = "step"
    stop_s: float = 50.0
    interpreter: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    leave_out: tuple[str, ...] = ()
    folder: str = ""
    cwd: str = ""
    alone: bool = False


@dataclass(frozen=True)
class CheckResult:
    """The result of one check program, as evidence of kind `checks` or `values` on this host."""

    kind: str
    source: str
    data: Mapping[str, Any]
    outcome: LookOutcome = "ok"
    reason: str = ""
    began: float = 0.0
    took_s: float = 0.0


Tell = Callable[[CheckResult], None]


def run_checks(wanted: CheckTask, tell: Tell, given_up: Callable[[], bool] = lambda: False) -> None:
    """Run every check program that `wanted` asks for, and pass each result to `tell` as soon as the
    program has ended.

    Returns before `wanted.stop_s` have passed. Never raises because of a program.
    """
    until = time.monotonic() + wanted.stop_s
    specs = check_programs(wanted.budget, wanted.slot, wanted.folder)
    left = still_there()
    for spec in specs:
        if _held_up(spec, left, wanted.slot):
            tell(_not_started(spec, wanted, _still_says(spec, left)))
    specs = tuple(spec for spec in specs if not _held_up(spec, left, wanted.slot))
    if not specs:
        return
    if wanted.interpreter not in ("", sys.executable):
        python = ask_python(wanted.interpreter, min(START_S, wanted.stop_s / 3))
        for result in _job_python_results(wanted.interpreter, python):
            tell(result)
        if python.state != "ok":  # the tool's own runs what does not speak of the job's
            wanted = replace(wanted, interpreter="")
            for spec in specs:
                if spec.extra.get("about") == JOB_PYTHON:
                    tell(_not_started(spec, wanted, python.says.rstrip(".")))
            specs = tuple(spec for spec in specs if spec.extra.get("about") != JOB_PYTHON)
    until -= min(KILL_S + CLOSE_S, wanted.stop_s / 4)
    with contextlib.ExitStack() as stack:
        folder = _working_folder(wanted)
        running = [
            stack.enter_context(_Running(spec, wanted, folder, until - time.monotonic()))
            for spec in specs
        ]
        keeper = stack.enter_context(Keeper(".", CLOSE_S))
        marker = Marker()
        try:
            keeper.start([one.child_spec() for one in running])
            _watch(keeper, running, marker, tell, lambda: given_up() or time.monotonic() >= until)
            if keeper.alive_pids():
                keeper.stop(0.0, KILL_S)
            for one in running:
                one.tell(keeper, tell)
        finally:
            marker.close(_below(keeper, only=keeper.unkillable))


def check_programs(budget: str, slot: str, folder: str = "") -> tuple[ProbeSpec, ...]:
    """Return the probes whose headers name this budget and slot, lowest rung first."""
    found = [
        spec
        for spec in in_folder(folder or built_in_folder())
        if spec.extra.get("ready") in BUDGETS
    ]
    most = BUDGETS.index(budget)
    asked = [
        spec
        for spec in found
        if BUDGETS.index(spec.extra["ready"]) <= most and slot in slots_of(spec)
    ]
    return tuple(sorted(asked, key=lambda spec: (spec.rung, spec.name)))


def slots_of(spec: ProbeSpec) -> tuple[str, ...]:
    """The slots that a check program's header names; by default the user's own step."""
    slots = spec.extra.get("slots", ["step"])
    return tuple(slot for slot in slots if slot in SLOTS) if isinstance(slots, list) else ("step",)


def checks_of(program: str, wanted: CheckTask) -> tuple[CheckSpec, ...]:
    """The catalogued checks that a program makes in this budget and slot."""
    most = BUDGETS.index(wanted.budget)
    rows = (
        row for row in catalogue().values() if row.program == program and wanted.slot in row.slots
    )
    return tuple(row for row in rows if BUDGETS.index(row.budget) <= most)


class _Running:
    """One check program: its files in memory, its deadline, and what it said."""

    def __init__(self, spec: ProbeSpec, wanted: CheckTask, cwd: str, left_s: float) -> None:
        self.spec, self.wanted, self.cwd = spec, wanted, cwd
        self.deadline_s = max(LEAST_S, min(spec.timeout_s, left_s))
        self.began = time.time()
        self.until = time.monotonic() + self.deadline_s
        self.killed_at: float | None = None
        self.reported = False
        self._events, self._output = _in_memory("events"), _in_memory("output")

    def __enter__(self) -> _Running:  # noqa: PYI034 - Self is newer than Python 3.9
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._events)
        os.close(self._output)

    def child_spec(self) -> ChildSpec:
        env = {
            **os.environ,
            **self.wanted.env,
            "TRAINPROBE_BUDGET": self.wanted.budget,
            "TRAINPROBE_SLOT": self.wanted.slot,
        }
        env.update(
            {
                "TRAINPROBE_DEADLINE_S": f"{self.deadline_s:g}",
                "TRAINPROBE_EVENTS": _path(self._events),
            }
        )
        argv = (
            self.wanted.interpreter or sys.executable,
            *(("-I", "-S") if self.wanted.alone else ()),
            self.spec.program,
        )
        return ChildSpec(
            self.spec.name,
            argv,
            env,
            self.cwd,
            _path(self._output),
            _path(self._output),
            output_cap_bytes=OUTPUT_BYTES,
        )

    def watch(self, child: Child) -> None:
        """Kill it at its deadline, once, unless its pid belongs to another process by now."""
        if (
            self.killed_at is not None
            or time.monotonic() < self.until
            or child.pid is None
            or child.ended is not None
        ):
            return
        self.killed_at = time.monotonic()
        stats = read_stat(child.pid)
        if stats is not None and stats.started_ticks == child.started_ticks:
            kill_below({child.pid})

    def over(self, child: Child) -> bool:
        """Has it ended, or is it past all that can be done?"""
        return child.ended is not None or (
            self.killed_at is not None and time.monotonic() - self.killed_at > KILL_S
        )

    def tell(self, keeper: Keeper, tell: Tell) -> None:
        if self.reported:
            return
        self.reported = True
        child = keeper.children[self.spec.name]
        parsed = events.parse(os.pread(self._events, EVENTS_BYTES, 0))
        rows, values = check_rows(parsed.events), value_rows(parsed.events)
        took_s = time.time() - self.began
        outcome, reason = self._outcome(child, parsed, keeper)
        dropped = dropped_rows(parsed.events)
        reported = {row["id"] for row in (*rows, *dropped)}
        own = checks_of(self.spec.name, self.wanted) if outcome != "ok" else ()
        missing = [spec for spec in own if not _is_reported(spec.id, reported)]
        open_phase = parsed.open_phase if outcome != "ok" else ""
        if open_phase and any(spec.id == open_phase for spec in missing):
            rows.append({"id": open_phase, "state": "unknown", "value": None, "says": reason})
            missing = [spec for spec in missing if spec.id != open_phase]
        dropped += [{"id": spec.id, "reason": reason} for spec in missing]
        gone = [row["id"] for row in rows if row["id"] in self.wanted.leave_out]
        rows = [row for row in rows if row["id"] not in gone]
        dropped += [{"id": check, "reason": "the site leaves it out"} for check in gone]
        data: dict[str, Any] = {
            "program": self.spec.name,
            "checks": rows,
            "open": open_phase,
            "dropped": dropped,
        }
        tell(CheckResult(KIND, self.spec.name, data, outcome, reason, self.began, took_s))
        if values:
            found = {"values": values}
            tell(CheckResult(VALUES, self.spec.name, found, outcome, reason, self.began, took_s))

    def _outcome(
        self, child: Child, parsed: events.Events, keeper: Keeper
    ) -> tuple[LookOutcome, str]:
        answer, says = parsed.answer
        where = f" in {parsed.open_phase}" if parsed.open_phase else ""
        if answer in ("yes", "no"):
            return (
                ("partial", f"{self.spec.name} said more than was read")
                if parsed.cut
                else ("ok", "")
            )
        if answer == "cannot":
            return "partial", says or f"{self.spec.name} could not look"
        ended = child.ended
        if child.pid in keeper.unkillable:
            return (
                "timed_out",
                (
                    f"{self.spec.name} hangs{where} and cannot be killed:"
                    f" {keeper.unkillable[child.pid]}"
                ),
            )
        if self.killed_at is not None or ended is None or ended.by_us or ended.how == "unkillable":
            return (
                "timed_out",
                f"{self.spec.name} gave no answer within {time.time() - self.began:.0f} s{where}",
            )
        last = os.pread(self._output, 4000, 0).decode("utf-8", "replace").strip().splitlines()[-1:]
        return "crashed", f"{self.spec.name} {how_ended(ended)}{where}" + (
            f": {last[0][:300]}" if last else ""
        )


def _watch(
    keeper: Keeper,
    running: Sequence[_Running],
    marker: Marker,
    tell: Tell,
    over: Callable[[], bool],
) -> None:
    while not over():
        marker.tell(_below(keeper))
        for one in running:
            child = keeper.children[one.spec.name]
            one.watch(child)
            if child.ended is not None:
                one.tell(keeper, tell)
        if all(one.over(keeper.children[one.spec.name]) for one in running):
            return
        keeper.wait(LOOK_AGAIN_S)


def _below(keeper: Keeper, only: Mapping[int, str] | None = None) -> dict[int, tuple[int, str]]:
    """Return {pid: (started_ticks, check program)} of the live processes below the keeper, or of
    `only` these.
    """
    found = {
        child.pid: (child.started_ticks or 0, key)
        for key, child in keeper.children.items()
        if child.pid is not None
    }
    found.update(
        {each.pid: (each.started_ticks, each.cmdline[:100]) for each in keeper.descendants.values()}
    )
    alive = set(only if only is not None else keeper.alive_pids())
    return {pid: row for pid, row in found.items() if pid in alive}


def _job_python_results(path: str, python: JobPython) -> list[CheckResult]:
    """The check, and the version of a Python that cannot run the program that would tell it."""
    row = {"id": CHECK, "state": python.state, "value": path, "says": python.says}
    data = {"program": JOB_PYTHON, "checks": [row], "open": "", "dropped": []}
    found = [CheckResult(KIND, JOB_PYTHON, data, began=time.time())]
    if python.state != "ok" and python.version:
        values = {"values": {"version.python": python.version}}
        found.append(CheckResult(VALUES, "launch_plan", values, "partial", python.says))
    return found


def _not_started(spec: ProbeSpec, wanted: CheckTask, reason: str) -> CheckResult:
    dropped = [{"id": row.id, "reason": reason} for row in checks_of(spec.name, wanted)]
    return CheckResult(
        KIND,
        spec.name,
        {"program": spec.name, "checks": [], "open": "", "dropped": dropped},
        "unavailable",
        reason,
        time.time(),
    )


def _held_up(spec: ProbeSpec, left: Sequence[Left], slot: str) -> bool:
    """Whether a stuck check prevents this program: any of them in an administrators' slot, its own
    in the user's step.
    """
    return bool(left) if slot != "step" else any(_is_of(spec, one) for one in left)


def _is_of(spec: ProbeSpec, left: Left) -> bool:
    return left.check == spec.name or os.path.basename(spec.program) in left.check


def _still_says(spec: ProbeSpec, left: Sequence[Left]) -> str:
    one = next((one for one in left if _is_of(spec, one)), left[0])
    began = time.strftime("%Y-%m-%d %H:%M", time.gmtime(one.since))
    return (
        f"not started: a check of {began} UTC still hangs in the kernel and cannot be killed (pid"
        f" {one.pid}, {one.check})"
    )


def _is_reported(check: str, reported: set[str]) -> bool:
    """A check of the catalogue may stand for several: `fs.space` for `fs.space:/data`."""
    return any(each == check or each.startswith((f"{check}.", f"{check}:")) for each in reported)


def _in_memory(name: str) -> int:
    return os.memfd_create(f"trainprobe-{name}", os.MFD_CLOEXEC)


def _path(fd: int) -> str:
    return f"/proc/{os.getpid()}/fd/{fd}"


def _working_folder(wanted: CheckTask) -> str:
    """Let a child try the folder: on a file system that hangs, every program would hang at once."""
    try:
        folder = wanted.cwd or os.getcwd()
    except OSError:  # it was removed under us
        return "/"
    try:
        tried = run(
            (sys.executable, "-I", "-S", "-c", "import os, sys; os.chdir(sys.argv[1])", folder),
            timeout_s=ENTER_S,
            kill_s=0.2,
            cwd="/",
        )
    except OSError:  # no place for its output anywhere
        return folder
    return folder if tried.ended.how == "exited" and tried.ended.code == 0 else "/"


def check_rows(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each check that the events report: id, state, value, says, and fields that replace
    those of the catalogue. The last event of a check wins.
    """
    rows: dict[str, dict[str, Any]] = {}
    for event in events:
        check = event.get("check")
        if (
            event.get("event") not in ("note", "fail")
            or not isinstance(check, str)
            or not check
            or (check not in rows and len(rows) >= MOST_ROWS)
        ):
            continue
        failed = "fail" if event["event"] == "fail" else "unknown"
        row = {
            "id": check[:NAME_CHARACTERS],
            "state": event["status"] if event.get("status") in STATES else failed,
            "value": _value(event.get("value")),
            "says": _text(event.get("says")),
        }
        row.update({name: text for name in OF_ROW if (text := _text(event.get(name)))})
        threshold = event.get("threshold")
        if isinstance(threshold, (str, int, float)) and not isinstance(threshold, bool):
            row["threshold"] = _value(threshold)
        rows[_key(rows, row)] = row
    return list(rows.values())


def _text(value: Any) -> str:
    return value[:SAYS_CHARACTERS] if isinstance(value, str) else ""


def dropped_rows(events: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the checks that a program left out by itself, each with the reason."""
    return [
        {
            "id": event["check"][:NAME_CHARACTERS],
            "reason": str(event.get("says") or "no reason was given")[:SAYS_CHARACTERS],
        }
        for event in events
        if event.get("event") == "dropped" and isinstance(event.get("check"), str)
    ][:MOST_ROWS]


def value_rows(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return {name: text, number or list} of the values that nodes are compared by."""
    values: dict[str, Any] = {}
    for event in events:
        name = event.get("name")
        if (
            event.get("event") == "value"
            and isinstance(name, str)
            and name
            and len(values) < MOST_VALUES
        ):
            values[name[:NAME_CHARACTERS]] = _value(event.get("value"))
    return values


def _key(rows: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """A check may report on several places (`fs.space` of each folder): two texts are two rows."""
    key = row["id"]
    while key in rows and rows[key]["says"] != row["says"]:
        key += "+"
    return str(key)


def _value(value: Any, *, nested: bool = False) -> Any:
    """A plain value of bounded size: a scalar, or a list or mapping of scalars."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        plain = math.isfinite(value) and abs(value) < 2**63
        return value if plain else str(value)[:NAME_CHARACTERS]
    if nested and isinstance(value, (list, tuple, dict)):
        return str(value)[:NAME_CHARACTERS]
    if isinstance(value, (list, tuple)):
        return [_value(item, nested=True) for item in value[:MOST_LISTED]]
    if isinstance(value, Mapping):
        rows = list(value.items())[:MOST_LISTED]
        return {str(name)[:NAME_CHARACTERS]: _value(item, nested=True) for name, item in rows}
    return str(value)[:VALUE_CHARACTERS]
