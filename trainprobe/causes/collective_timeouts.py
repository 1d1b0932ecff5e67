"""Collectives that timed out, by the logs of a job: who waited in which, who never came, and what
one rank was doing meanwhile.

`waits/absentees.py` works out who never came; where the calls of the ranks part is in the group's
divergence.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

from trainprobe.causes.phrases import ranks_say
from trainprobe.causes.scene import Scene
from trainprobe.facts import CollectiveCall, LogEvent, LogJob, LogProgress
from trainprobe.facts.collectives import WATCHDOG
from trainprobe.waits.absentees import Absentees, absentees
from trainprobe.waits.divergence import call_says

SHARDED = re.compile(
    r"_allgather_base|_reduce_scatter_base|all_gather_into_tensor|reduce_scatter_tensor"
    r"|allgather_coalesced",
    re.IGNORECASE,
)
_SHARDED_SAVE = re.compile(r"(?i)\bsav(?:e|ing)\b.{0,40}(?:FSDP|shard|ZeRO|state.?dict|DCP)")
_GATHERS = re.compile(r"(?i)all_?gather|broadcast|reduce_?scatter")
LONG_SAVE_S = 3600.0


class Timeouts:
    """All that the logs of one cell tell of collectives that timed out."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._events: dict[str, list[LogEvent]] = defaultdict(list)
        # A live job's output holds such lines as well; there stacks and journals say it better.
        for event in (
            scene.facts.of(LogEvent, cell=scene.cell)
            if scene.facts.one(LogJob, cell=scene.cell) is not None
            else ()
        ):
            self._events[event.event].append(event)

    def events(self, *shows: str) -> list[LogEvent]:
        """Lines of the whole cell that show one of these, in their order."""
        return sorted(
            (event for name in shows for event in self._events[name]),
            key=lambda event: event.place if event.place is not None else -1,
        )

    def rank_of(self, event: LogEvent) -> int | None:
        """Of whom it speaks: by the line's own words, else its speaker."""
        own = event.number("rank")
        return own if own is not None else event.rank

    @cached_property
    def calls(self) -> tuple[CollectiveCall, ...]:
        """Every call that timed out."""
        return tuple(
            call
            for call in self.scene.facts.of(CollectiveCall, cell=self.scene.cell)
            if call.source == WATCHDOG
        )

    @cached_property
    def first(self) -> Mapping[int, CollectiveCall]:
        """The call in which each rank hung: its lowest, since later ones queue behind it."""
        found: dict[int, CollectiveCall] = {}
        for call in self.calls:
            if call.rank is not None and (
                call.rank not in found or call.number < found[call.rank].number
            ):
                found[call.rank] = call
        return found

    @cached_property
    def gave_up(self) -> frozenset[int]:
        """The ranks that waited as long as they may, also where the call is not told."""
        ends = self.events("watchdog-ends-process")
        return frozenset({*self.first, *(one.rank for one in ends if one.rank is not None)})

    @cached_property
    def timeout_s(self) -> float | None:
        """The shortest limit that ran out, seconds; of the store where no call is known."""
        of_calls = [call.timeout_s for call in self.calls if call.timeout_s]
        of_store = [ms / 1000 for one in self.events("store-timeout") if (ms := one.number("ms"))]
        return min(of_calls or of_store, default=None)

    @cached_property
    def world(self) -> int:
        """How many ranks there are, 0 where only those that timed out are known."""
        reported = self.scene.group.world_size
        return reported if reported > max((*self.first, 0)) and reported > 1 else 0

    @cached_property
    def together(self) -> bool:
        """Did every rank of the world give up in one and the same call?"""
        keys = {(call.number, call.op, call.numel_in) for call in self.first.values()}
        return (
            self.world > 1
            and len(self.first) == self.world
            and len(keys) == 1
            and self.scene.parted is None
        )

    @cached_property
    def missing(self) -> Absentees | None:
        """Who never came."""
        return absentees(self.scene.facts, self.scene.cell)

    @cached_property
    def behind(self) -> str:
        """Who gave up at an earlier call than the others, in which it waited as they did in theirs:
        a sentence; empty where nobody did.
        """
        ranks = self.missing.ranks if self.missing is not None else ()
        others = [rank for rank in self.first if rank not in ranks]
        if not ranks or not others or not set(ranks) <= set(self.first):
            return ""
        mine, theirs = self.first[ranks[0]], self.first[others[0]]
        return (
            f"{ranks_say(ranks)} waited in {call_says(mine)} and {ranks_say(others, capital=False)}"
            f" in {call_says(theirs)}, each for the others"
        )

    @cached_property
    def over(self) -> LogEvent | LogProgress | None:
        """The word that the training was over, where it came before every call that timed out."""
        begins = min((call.place or 0 for call in self.calls), default=None)
        told: list[LogEvent | LogProgress] = list(self.events("training-ended"))
        told += [fact for fact in self.scene.of(LogProgress) if fact.finished or _is_full(fact)]
        return next((one for one in told if begins is not None and (one.place or 0) < begins), None)

    @cached_property
    def saved_together(self) -> bool:
        """Did the others give up in a gather after more than an hour, while a sharded model was
        saved? All ranks take part in such a save, and none takes as long.
        """
        return (
            self.task is not None
            and _SHARDED_SAVE.search(self.task.line) is not None
            and any(_GATHERS.search(call.op) for call in self.calls)
            and (self.timeout_s or 0.0) > LONG_SAVE_S
        )

    @cached_property
    def task(self) -> LogEvent | None:
        """The last long task that began before the first timeout and did not end."""
        begins = min((call.place or 0 for call in self.calls), default=None)
        if begins is None:
            return None
        shown = [
            event
            for event in self.events("task-began", "load-began")
            if event.place is None or event.place < begins or event.rank not in self.first
            # a rank whose bar is full waits itself
            if event.rank not in self.first or event.rank is None or "100%" not in event.line
        ]
        for event in reversed(shown):
            # what is loaded whole is at its end, whoever read it
            if event.event == "load-began" and event.captured.get("percent") == "100":
                return None
            ended = [
                end
                for end in self.events("task-ended")
                if (end.place or 0) > (event.place or 0)
                and end.rank == event.rank
                and (end.place or 0) < begins
            ]
            return None if ended else event
        return None


def _is_full(progress: LogProgress) -> bool:
    """Has it come to the end of the only bar of a training?"""
    whole = progress.of is not None and progress.of == progress.step
    return whole and progress.doing == "train" and progress.epoch is None
