"""The checks of this node: every check program of the budget in a process of its own, all side by side, and none of them beyond the hard stop.

Nothing is written to any disk: what the programs say goes through files in memory, so that a full TMPDIR or a read-only working directory costs
nothing. A program that no signal can end is left behind with the name of its open check, and nothing is started while it lives.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainprobe.checks import BUDGETS, SLOTS, CheckSpec, catalogue
from trainprobe.ladder import events
from trainprobe.ladder.outcome import how_ended
from trainprobe.ladder.probes import built_in_folder, in_folder
from trainprobe.model.evidence import LookOutcome
from trainprobe.model.probes import ProbeSpec
from trainprobe.ready.left_behind import Left, Marker, still_there
from trainprobe.ready.rows import check_rows, dropped_rows, value_rows
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


@dataclass(frozen=True)
class Wanted:
    """What is to be checked here. `stop_s` is when all of it is over, killing included; `env` is added to our own environment.

    `folder` holds the check programs, "" for our own. `interpreter` runs them, "" for the Python of this tool.
    `cwd` is where they run, "" for where we are; where that cannot be entered in a moment, they run in /.
    `alone` runs them without site-packages, where the standard library will do and each file that is looked for costs a shared disk.
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
class Told:
    """What one check program said, as evidence of kind `checks` or `values` on this host. `began` is Unix time, `took_s` in seconds."""

    kind: str
    source: str
    data: Mapping[str, Any]
    outcome: LookOutcome = "ok"
    reason: str = ""
    began: float = 0.0
    took_s: float = 0.0


Tell = Callable[[Told], None]


def run_checks(wanted: Wanted, tell: Tell, given_up: Callable[[], bool] = lambda: False) -> None:
    """Run every check program that `wanted` asks for and `tell` what each said, as soon as it has ended.

    Returns before `wanted.stop_s` have passed. Never raises for what a program does.
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
    until -= min(KILL_S + CLOSE_S, wanted.stop_s / 4)
    with contextlib.ExitStack() as stack:
        folder = _working_folder(wanted)
        running = [stack.enter_context(_Running(spec, wanted, folder, until - time.monotonic())) for spec in specs]
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
    """Return the probes whose header says that they are checks of this budget and slot, lowest rung first."""
    found = [spec for spec in in_folder(folder or built_in_folder()) if spec.extra.get("ready") in BUDGETS]
    most = BUDGETS.index(budget)
    asked = [spec for spec in found if BUDGETS.index(spec.extra["ready"]) <= most and slot in slots_of(spec)]
    return tuple(sorted(asked, key=lambda spec: (spec.rung, spec.name)))


def slots_of(spec: ProbeSpec) -> tuple[str, ...]:
    """Where a check program may run, by its header; inside the user's own step where it does not say."""
    slots = spec.extra.get("slots", ["step"])
    return tuple(slot for slot in slots if slot in SLOTS) if isinstance(slots, list) else ("step",)


def checks_of(program: str, wanted: Wanted) -> tuple[CheckSpec, ...]:
    """The catalogued checks that a program makes in this budget and slot."""
    most = BUDGETS.index(wanted.budget)
    rows = (row for row in catalogue().values() if row.program == program and wanted.slot in row.slots)
    return tuple(row for row in rows if BUDGETS.index(row.budget) <= most)


class _Running:
    """One check program: its files in memory, its deadline, and what it said."""

    def __init__(self, spec: ProbeSpec, wanted: Wanted, cwd: str, left_s: float) -> None:
        self.spec, self.wanted, self.cwd = spec, wanted, cwd
        self.deadline_s = max(LEAST_S, min(spec.timeout_s, left_s))
        self.began = time.time()
        self.until = time.monotonic() + self.deadline_s
        self.killed_at: float | None = None
        self.told = False
        self._events, self._output = _in_memory("events"), _in_memory("output")

    def __enter__(self) -> _Running:  # noqa: PYI034 - Self is newer than Python 3.9
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._events)
        os.close(self._output)

    def child_spec(self) -> ChildSpec:
        env = {**os.environ, **self.wanted.env, "TRAINPROBE_BUDGET": self.wanted.budget, "TRAINPROBE_SLOT": self.wanted.slot}
        env.update({"TRAINPROBE_DEADLINE_S": f"{self.deadline_s:g}", "TRAINPROBE_EVENTS": _path(self._events)})
        argv = (self.wanted.interpreter or sys.executable, *(("-I", "-S") if self.wanted.alone else ()), self.spec.program)
        return ChildSpec(self.spec.name, argv, env, self.cwd, _path(self._output), _path(self._output), output_cap_bytes=OUTPUT_BYTES)

    def watch(self, child: Child) -> None:
        """Kill it at its deadline, once; pids that were given to somebody else are left alone."""
        if self.killed_at is not None or time.monotonic() < self.until or child.pid is None or child.ended is not None:
            return
        self.killed_at = time.monotonic()
        stats = read_stat(child.pid)
        if stats is not None and stats.started_ticks == child.started_ticks:
            kill_below({child.pid})

    def over(self, child: Child) -> bool:
        """Has it ended, or is it past all that can be done?"""
        return child.ended is not None or (self.killed_at is not None and time.monotonic() - self.killed_at > KILL_S)

    def tell(self, keeper: Keeper, tell: Tell) -> None:
        if self.told:
            return
        self.told = True
        child = keeper.children[self.spec.name]
        said = events.parse(os.pread(self._events, EVENTS_BYTES, 0))
        rows, values = check_rows(said.events), value_rows(said.events)
        took_s = time.time() - self.began
        outcome, reason = self._outcome(child, said, keeper)
        dropped = dropped_rows(said.events)
        told_ids = {row["id"] for row in (*rows, *dropped)}
        missing = [spec for spec in checks_of(self.spec.name, self.wanted) if not _told(spec.id, told_ids)] if outcome != "ok" else []
        open_phase = said.open_phase if outcome != "ok" else ""
        if open_phase and any(spec.id == open_phase for spec in missing):
            rows.append({"id": open_phase, "state": "unknown", "value": None, "says": reason})
            missing = [spec for spec in missing if spec.id != open_phase]
        dropped += [{"id": spec.id, "reason": reason} for spec in missing]
        gone = [row["id"] for row in rows if row["id"] in self.wanted.leave_out]
        rows = [row for row in rows if row["id"] not in gone]
        dropped += [{"id": check, "reason": "the site leaves it out"} for check in gone]
        data = {"program": self.spec.name, "checks": rows, "open": open_phase, "dropped": dropped}
        tell(Told(KIND, self.spec.name, data, outcome, reason, self.began, took_s))
        if values:
            tell(Told(VALUES, self.spec.name, {"values": values}, "ok", "", self.began, took_s))

    def _outcome(self, child: Child, said: events.Events, keeper: Keeper) -> tuple[LookOutcome, str]:
        answer, says = said.answer
        where = f" in {said.open_phase}" if said.open_phase else ""
        if answer in ("yes", "no"):
            return ("partial", f"{self.spec.name} said more than was read") if said.cut else ("ok", "")
        if answer == "cannot":
            return "partial", says or f"{self.spec.name} could not look"
        ended = child.ended
        if child.pid in keeper.unkillable:
            return "timed_out", f"{self.spec.name} hangs{where} and cannot be killed: {keeper.unkillable[child.pid]}"
        if self.killed_at is not None or ended is None or ended.by_us or ended.how == "unkillable":
            return "timed_out", f"{self.spec.name} gave no answer within {time.time() - self.began:.0f} s{where}"
        last = os.pread(self._output, 4000, 0).decode("utf-8", "replace").strip().splitlines()[-1:]
        return "crashed", f"{self.spec.name} {how_ended(ended)}{where}" + (f": {last[0][:300]}" if last else "")


def _watch(keeper: Keeper, running: Sequence[_Running], marker: Marker, tell: Tell, over: Callable[[], bool]) -> None:
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
    """Return {pid: (started_ticks, check program)} of what is alive below the keeper, or of `only` these."""
    found = {child.pid: (child.started_ticks or 0, key) for key, child in keeper.children.items() if child.pid is not None}
    found.update({each.pid: (each.started_ticks, each.cmdline[:100]) for each in keeper.descendants.values()})
    alive = set(only if only is not None else keeper.alive_pids())
    return {pid: row for pid, row in found.items() if pid in alive}


def _not_started(spec: ProbeSpec, wanted: Wanted, reason: str) -> Told:
    dropped = [{"id": row.id, "reason": reason} for row in checks_of(spec.name, wanted)]
    return Told(KIND, spec.name, {"program": spec.name, "checks": [], "open": "", "dropped": dropped}, "unavailable", reason, time.time())


def _held_up(spec: ProbeSpec, left: Sequence[Left], slot: str) -> bool:
    """In a slot of the administrators nothing more is started; in the user's own step all but the program that hangs."""
    return bool(left) if slot != "step" else any(_is_of(spec, one) for one in left)


def _is_of(spec: ProbeSpec, left: Left) -> bool:
    return left.check == spec.name or os.path.basename(spec.program) in left.check


def _still_says(spec: ProbeSpec, left: Sequence[Left]) -> str:
    one = next((one for one in left if _is_of(spec, one)), left[0])
    began = time.strftime("%Y-%m-%d %H:%M", time.gmtime(one.since))
    return f"not started: a check of {began} UTC still hangs in the kernel and cannot be killed (pid {one.pid}, {one.check})"


def _told(check: str, told: Any) -> bool:
    """A catalogued check may stand for several: `fs.space` for `fs.space:/data`, `env` for `env.NAME`."""
    return any(one == check or one.startswith((f"{check}.", f"{check}:")) for one in told)


def _in_memory(name: str) -> int:
    return os.memfd_create(f"trainprobe-{name}", os.MFD_CLOEXEC)


def _path(fd: int) -> str:
    return f"/proc/{os.getpid()}/fd/{fd}"


def _working_folder(wanted: Wanted) -> str:
    """Tried by a child first: on a file system that does not answer every program would hang before its first word."""
    try:
        folder = wanted.cwd or os.getcwd()
    except OSError:  # it was removed under us
        return "/"
    try:
        tried = run((sys.executable, "-I", "-S", "-c", "import os, sys; os.chdir(sys.argv[1])", folder), timeout_s=ENTER_S, kill_s=0.2, cwd="/")
    except OSError:  # no place for its output anywhere
        return folder
    return folder if tried.ended.how == "exited" and tried.ended.code == 0 else "/"
