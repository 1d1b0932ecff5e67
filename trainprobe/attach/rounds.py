"""Rounds of looks at the processes of a live job: what each showed, and whether to go on."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from trainprobe.collect.collectors.awaited import WaitingLine
from trainprobe.collect.processes import look_at_processes
from trainprobe.collect.stacks import look_at_stacks
from trainprobe.collect.thread_history import NAP_S, WAITS, ThreadHistory, note_process, note_stack
from trainprobe.stacks import compiling, group_making
from trainprobe.stacks.gpu_waits import brings_to_host
from trainprobe.stacks.parting_names import Function, arguments_of_calls, names_that_tell
from trainprobe.stacks.places import is_torch, is_user
from trainprobe.stacks.rules import RPC
from trainprobe.stacks.stillness import FRESH_S, HUNG_S, SWITCHES_PER_LOOK, WATCHED_S

if TYPE_CHECKING:
    from trainprobe.attach.pace import Clock, Pace
    from trainprobe.case import Case
    from trainprobe.collect.members import Member
    from trainprobe.model.evidence import Evidence
    from trainprobe.stacks.frames import Frame

STACKS_CAP = 400
RECENT_LOOKS = 16  # of a watch: to tell whether the job goes on
VALUES_CAP = 2
GROUPS_CAP = 8  # each takes some tenths of a second
PARTED_CAP = 8
# Classes of places in which a rank of its own accord waits for something that its line may name.
LINE_NAMES_IT = frozenset({"sleep", "python-run", "lock", "file-io", "net-io", "store-wait", ""})
WAITS_FOR_A_NAME = re.compile(r"\.(?:get|wait|join|acquire|result|recv|read\w*)\(|\bopen\(")
NATIVE_CAP = 2
UNDECIDED = frozenset({"python-run", "native-run", ""})
MOVING = ("moving", "busy")
# Who is there waits for somebody else, or its samples tell more than its values.
ASK_FOR_ANOTHER = ("dataloader", "child-wait", "worker-idle", "teardown", "compile", "net-io")
ALONE_S = 10.0  # who has kept the others waiting for less may just take long
STEPPING = (
    "comm-wait",
    "gpu-wait",
)  # who runs there between two looks has gone through one and into the next


class Rounds:
    """The looks at one job. Processes may join; one that goes is looked at once more."""

    def __init__(self, case: Case, cell: str, pace: Pace, clock: Clock, at_once: int) -> None:
        self.case, self.cell, self.pace, self.clock, self.at_once = case, cell, pace, clock, at_once
        self.number = 0
        self.elsewhere = False  # has the job ranks on other hosts?
        self.watched: dict[tuple[int, int | None], ThreadHistory] = {}
        self.stacks: list[Evidence] = []

    def look(self, members: Sequence[Member]) -> None:
        """Look at /proc of all members, then at the Python stacks of those that run Python."""
        self.number += 1
        members = sorted(members, key=lambda each: each.role != "rank")
        watched = [
            self.watched.setdefault((member.pid, member.started_ticks), ThreadHistory(member))
            for member in members
        ]
        processes = look_at_processes(
            self.case,
            self.cell,
            members,
            self.number,
            deadline_s=self.clock.at_most(self.pace.processes_s),
        )
        for each, process in zip(watched, processes):
            note_process(each, process)
        speaking = [
            each
            for each in watched
            if each.member.role in ("rank", "loader-worker") or speaks_python(each.member.pid)
        ][:STACKS_CAP]
        allowed_s = self.clock.at_most(self.pace.stacks_s)
        asked = [each.member for each in speaking]
        stacks = look_at_stacks(
            self.case, self.cell, asked, self.number, deadline_s=allowed_s, at_once=self.at_once
        )
        for each, stack in zip(speaking, stacks):
            note_stack(each, stack)
        self.stacks = stacks  # the lines of earlier looks have been read by then

    def shorten(self, ended: Collection[Member]) -> None:
        """Forget what only a long watch piles up: all but the last looks of each process, and
        those that have ended.
        """
        for member in ended:
            self.watched.pop((member.pid, member.started_ticks), None)
        for each in self.watched.values():
            each.shorten(RECENT_LOOKS)

    @property
    def ranks(self) -> list[ThreadHistory]:
        return [each for each in self.watched.values() if each.member.role == "rank"]

    def undecided(self) -> bool:
        """Say whether a rank, or a loader worker that a rank waits for, runs in no known wait."""
        busy = [
            each
            for each in self.watched.values()
            if each.moving() in MOVING and (each.leaf not in WAITS or each.may_wait_for_gpu)
        ]
        if any(each.member.role == "rank" for each in busy):
            return True
        for_data = {each.member.rank for each in self.ranks if each.leaf == "dataloader"}
        return any(each.member.role != "rank" and each.member.rank in for_data for each in busy)

    def busy_alone(self) -> bool:
        """Say whether a rank computes in one place, in all looks, while others wait for it, or
        wants to and gets no further: another thread of its own may keep the interpreter lock.
        """
        busy = [
            each
            for each in self.ranks
            if each.moving() == "busy" or (each.asks_in_vain and not each.waits_for_peers)
        ]
        return bool(busy) and self._others_wait(busy)

    def _others_wait(self, found: Collection[ThreadHistory]) -> bool:
        """Do all other ranks wait for ranks?"""
        return all(each in found or each.waits_for_peers for each in self.ranks if each.stacks)

    def worker_alone(self) -> bool:
        """Say whether a loader worker computes while all ranks wait, one of them for it."""
        loading = {each.member.rank for each in self.ranks if each.leaf == "dataloader"}
        return any(
            each.member.role == "loader-worker"
            and each.member.rank in loading
            and each.leaf != "worker-idle"
            and each.moving() in MOVING
            for each in self.watched.values()
        ) and all(
            each.leaf == "dataloader" or each.waits_for_peers for each in self.ranks if each.stacks
        )

    def alone_at_work(self) -> list[Member]:
        """At most two ranks, or loader workers of ranks, that work while all other ranks have
        waited for some time: whatever holds them up goes on there, or goes round for ever. Those
        that run at one place and may wait for a GPU, too.
        """
        if at_gpu := self.at_gpu():
            return [each.member for each in at_gpu[:VALUES_CAP]]
        ranks = [each for each in self.ranks if each.stacks]
        loading = {each.member.rank for each in ranks if each.leaf == "dataloader"}
        working = [
            each
            for each in self.watched.values()
            if each.stacks
            and (each.moving() in MOVING or each.computes)
            and not each.waits_for_peers
            and each.leaf not in ASK_FOR_ANOTHER
            and (each.member.role == "rank" or each.member.rank in loading)
        ]
        others = [each for each in ranks if each not in working]
        silent = self._silent_s()
        waited_s = max(
            (max(each.asleep_s or 0.0, silent.get(each.member.pid, 0.0)) for each in others),
            default=0.0,
        )
        alone = len(working) <= VALUES_CAP and all(
            each.waits_for_peers or each.leaf == "dataloader" for each in others
        )
        return [each.member for each in working] if alone and waited_s >= ALONE_S else []

    def at_gpu(self) -> list[ThreadHistory]:
        """The ranks that may wait for a GPU, where all others wait for ranks."""
        found = [each for each in self.ranks if each.stacks and each.may_wait_for_gpu]
        return found if self._others_wait(found) else []

    def steps(self) -> bool:
        """Say whether ranks go through their collectives, so that one can be later than others.

        Who woke in a collective and sleeps in one again has gone through it, however long it takes;
        who did so in its data loader got a batch.
        """
        ranks = [each for each in self.ranks if each.stacks]
        stepping = [each for each in ranks if each.leaf in (*STEPPING, "dataloader")]
        several = len(ranks) > 1 or self.elsewhere
        if several and stepping and all(each.sleeps_again for each in stepping):
            return True
        long_asleep = any(
            (each.asleep_s or 0.0) >= self.pace.third_look_s and each.moving() not in MOVING
            for each in ranks
        )
        return several and not long_asleep and self.age_s() is None

    def load(self) -> bool:
        """Say whether all ranks stood in their data loaders at the last look."""
        ranks = [each for each in self.ranks if each.stacks]
        return bool(ranks) and all(each.leaf == "dataloader" for each in ranks)

    def age_s(self) -> float | None:
        """How long the longest waiting rank had waited at the first look; None where some rank goes
        on, or none can be seen. Where ranks wait for the network, they count alone: they may have
        asked for their fifth file while the others wait.

        The silence of the connections between ranks counts too: whoever looks at a stack wakes its
        thread. Who polls wakes by itself, and waits all the same unless it has just exchanged data
        with another rank: 0 where nothing tells since when.
        """
        ranks = [
            each
            for each in self.ranks
            if each.asleep_s is not None and each.state not in ("", "Z", "X")
        ]
        if not ranks or any(each.moving() in MOVING for each in self.ranks):
            return None
        silent = self._silent_s()
        for each in ranks:
            if _ran(each) and (
                each.leaf in STEPPING or silent.get(each.member.pid, HUNG_S) < FRESH_S
            ):
                return None
        asking = [
            each.asleep_s or 0.0 for each in ranks if each.sleeps_in == "net-io" and not _ran(each)
        ]
        if asking and any(each.waits_for_peers for each in ranks):
            return min(asking)
        in_collective = [
            silent.get(each.member.pid, 0.0)
            for each in ranks
            # torch's RPC answers through shared memory: its connections are silent whatever it does
            if each.leaf == "comm-wait" and each.op != RPC
        ]
        return max(
            [*(0.0 if _ran(each) else each.asleep_s or 0.0 for each in ranks), *in_collective]
        )

    def all_at_the_store(self) -> bool:
        """Do all ranks that can be seen wait at the store? They poll it: only a look some seconds
        later tells a wait from a start.
        """
        ranks = [each for each in self.ranks if each.stacks]
        return bool(ranks) and all(each.leaf == "store-wait" for each in ranks)

    def pausing_s(self) -> float | None:
        """For how long all ranks that sleep have slept by now, where that may still be a pause: a
        lock, an answer or a tool that takes seconds. None where somebody goes on, or has ended or
        is stopped, or where some have slept, or all been silent, for longer than a step takes.

        Who polls does not count: it wakes by itself, whatever happens.
        """
        ranks = [each for each in self.ranks if each.stacks]
        if any(
            each.state in ("T", "t", "Z", "X")
            or each.goes_on
            or (each.leaf in STEPPING and each.sleeps_again)
            for each in ranks
        ):
            return None
        began = [
            each.slept_since
            for each in ranks
            if each.slept_since is not None and not each.sleeps_again
        ]
        silent_s = min(self._silent_s().values(), default=0.0)
        if not began or max(time.time() - min(began), silent_s) >= WATCHED_S:
            return None
        return time.time() - max(began)

    def _silent_s(self) -> dict[int, float]:
        """For how long each rank had exchanged no data with another at the look."""
        silent: dict[int, float] = {}
        for row in (
            row
            for record in self.case.evidence
            if record.kind == "sockets"
            for row in record.data.get("connections") or ()
        ):
            if (
                row.get("peer_rank") is not None
                and row.get("peer_pid") != row["pid"]
                and row.get("silent_s") is not None
            ):
                silent[row["pid"]] = min(row["silent_s"], silent.get(row["pid"], row["silent_s"]))
        return silent

    def own_waits(self) -> list[WaitingLine]:
        """Return at most two processes that stand in the user's own code and in no known wait for
        other ranks: the line of each, with the conditions of the loop around it.
        """
        found: list[WaitingLine] = []
        places = self._places()
        for each in sorted(self.watched.values(), key=lambda one: one.member.role != "rank"):
            stack = each.stacks[-1] if each.stacks else ()
            frame = next((frame for frame in reversed(stack) if is_user(frame)), None)
            place = places.get((frame.file, frame.line)) if frame is not None else None
            if (
                frame is None
                or place is None
                or each.member.role not in ("rank", "loader-worker")
                or each.sleeps_in not in LINE_NAMES_IT
            ):
                continue
            texts = waiting_texts(place)
            if texts:
                found.append(WaitingLine(each.member, frame.file, frame.line, texts))
        return found[:VALUES_CAP]

    def compilations(self) -> list[WaitingLine]:
        """At most two ranks that dynamo compiles for, and where it knows which compilation that
        is and why it is needed.
        """
        return self._knowing(compiling.compilation, compiling.REASON)[:VALUES_CAP]

    def groups_made(self) -> list[WaitingLine]:
        """Ranks that stand where torch makes a further process group, and where it knows the number
        and size of that; [] unless several do. Of many, those at equal distances.
        """
        found = self._knowing(group_making.making, group_making.NUMBER, group_making.SIZE)
        return found[:: -(-len(found) // GROUPS_CAP)] if len(found) > 1 else []

    def parted(self) -> tuple[list[Member], dict[Function, tuple[str, ...]]]:
        """Ranks that wait for others, also in a `work.wait()`, which shows no frame: at most
        PARTED_CAP, of each stack some. And the names whose values may tell for whom and, where all
        ranks wait for each other, how they parted.
        """
        ranks = [each for each in self.ranks if each.stacks and each.stacks[-1]]
        if (self.age_s() or 0.0) < FRESH_S:
            return [], {}
        sites = self._places()

        def waits(each: ThreadHistory) -> bool:
            return each.waits_for_peers or (
                ".wait(" in _text(each, sites) and each.moving() == "frozen"
            )

        waiting = [each for each in ranks if waits(each)]
        alike: dict[object, list[ThreadHistory]] = {}
        for each in waiting:
            alike.setdefault(tuple(each.stacks[-1]), []).append(each)
        ordered = [one for row in zip_longest(*alike.values()) for one in row if one is not None]
        chosen = ordered[:PARTED_CAP]
        stacks = [each.stacks[-1] for each in chosen]
        names = arguments_of_calls(stacks)
        if len(waiting) == len(ranks):
            names.update(names_that_tell(stacks, sites))
        return [each.member for each in chosen], names

    def _knowing(
        self, frame_in: Callable[[Sequence[Frame]], Frame | None], *names: str
    ) -> list[WaitingLine]:
        """The ranks with such a frame in their stacks, whose locals of these names tell more."""
        return [
            WaitingLine(each.member, frame.file, frame.line, names, frame.name)
            for each in self.ranks
            if each.stacks and (frame := frame_in(each.stacks[-1])) is not None
        ]

    def _places(self) -> dict[tuple[str, int], Mapping[str, Any]]:
        """The lines whose source was read, by file and line."""
        return {
            (str(record.data.get("file")), site["line"]): site
            for record in self.case.evidence
            if record.kind == "source" and record.cell == self.cell
            for site in record.data.get("sites", ())
        }

    def native_suspects(self) -> list[Member]:
        """Return at most two frozen ranks that Python frames and syscall do not explain; one where
        all stand in the same call of torch, in which nobody is missing; or those that may wait for
        a GPU at a line which does not say so.
        """
        ranks = [each for each in self.ranks if each.stacks]
        frozen = [each for each in ranks if each.moving() == "frozen"]
        unexplained = [each.member for each in frozen if each.sleeps_in in UNDECIDED][:NATIVE_CAP]
        together = (
            len(ranks) > 1
            and not self.elsewhere
            and frozen == ranks
            and all(is_torch(each.stacks[-1][-1]) for each in ranks)
            and len({each.places[-1] for each in ranks}) == 1
        )
        return (
            unexplained
            or [each.member for each in frozen[:1] if together]
            or self._silent_at_gpu()[:NATIVE_CAP]
        )

    def _silent_at_gpu(self) -> list[Member]:
        """Those that may wait for a GPU at a line which does not say so."""
        found = [each for each in self.at_gpu() if each.leaf != "gpu-wait"]
        sites = self._places() if found else {}
        return [each.member for each in found if not brings_to_host(_text(each, sites))]


def _text(each: ThreadHistory, sites: Mapping[tuple[str, int], Mapping[str, Any]]) -> str:
    """The line where it stands, if that is the user's and was read."""
    last = each.stacks[-1][-1]
    return str(sites.get((last.file, last.line), {}).get("text", "")) if is_user(last) else ""


def waiting_texts(place: Mapping[str, Any]) -> tuple[str, ...]:
    """The statement of a line that waits, and what the loop around it asks; () in no `while` loop
    whose line calls nothing that waits.
    """
    loops = [block for block in place.get("blocks") or () if block.get("kind") == "while"]
    text = str(place.get("text") or "")
    if not loops:
        return (text,) if WAITS_FOR_A_NAME.search(text) else ()
    ways_out = [
        str(skip.get("text") or "")
        for skip in place.get("skips") or ()
        if skip.get("loop") == loops[-1].get("line") and skip.get("how") in ("break", "return")
    ]
    return (str(loops[-1].get("text") or ""), text, *ways_out)


def _ran(each: ThreadHistory) -> bool:
    """Say whether its main thread was woken by more than our looks, two switches for each, and
    not only in the moment of the first.
    """
    began = each.slept_since
    if began is not None and began <= each.naps[0][0] + NAP_S:
        return False
    return len(each.voluntary) > 1 and each.voluntary[-1] - each.voluntary[
        0
    ] > SWITCHES_PER_LOOK * (len(each.voluntary) - 1)


def speaks_python(pid: int) -> bool:
    """Say whether a process runs a Python, by the name of its program; a launcher or a child may
    be anything. True where that is hidden.
    """
    try:
        return "python" in os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return True
