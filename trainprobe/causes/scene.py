"""The facts about one suspect group; every cause reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from trainprobe.facts import (
    Facts,
    FatalSignal,
    Given,
    HostCheck,
    Job,
    LogEvent,
    LogFailure,
    MainThread,
    MemoryLimit,
    OomKill,
    Plan,
    ProcessState,
    Progress,
    RankEnding,
    RankException,
    SourceSite,
    Thread,
)
from trainprobe.facts.collectives import CollectiveCall
from trainprobe.facts.table import ANY, AnyRank, F
from trainprobe.model.diagnosis import Family, Weighing
from trainprobe.model.facts import Fact
from trainprobe.model.pids import HostPid
from trainprobe.model.unnumbered import pid_of
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import user_frame
from trainprobe.waits import Divergence, SuspectGroup
from trainprobe.waits.activity import Watch, watch_of

__all__ = ["WAITS_FOR_RANKS", "Scene", "Weighings", "first_found", "user_frame", "weighing"]

T = TypeVar("T")
P = TypeVar("P", MainThread, ProcessState, Thread)  # facts about one process
Weighings = Iterator[Weighing]

# Leaf classes (stacks.classify) of a thread that waits for other ranks.
WAITS_FOR_RANKS = frozenset({"comm-wait", "gpu-wait", "store-wait"})


def waits_for_ranks(thread: MainThread) -> bool:
    """Does it stand in a collective, at the store or in a backward, in which DDP reduces?"""
    return thread.leaf in WAITS_FOR_RANKS or thread.in_backward


def first_found(items: Iterable[T]) -> T | None:
    """The first of them, None if there is none."""
    return next(iter(items), None)


def weighing(
    points: int, family: Family, says: str, *facts: Fact | None, ids: Iterable[str] = ()
) -> Weighing:
    """Return a weighing that carries the ids of all evidence behind `facts`, each once."""
    shown = [id_ for fact in facts if fact is not None for id_ in fact.evidence]
    return Weighing(points, family, says, tuple(dict.fromkeys([*shown, *ids])))


@dataclass(frozen=True)
class Scene:
    """The facts of one suspect group, within its cell and the ranks' own processes."""

    facts: Facts
    group: SuspectGroup

    @cached_property
    def found(self) -> dict[object, Any]:
        """What functions over the whole scene have found in it, by function."""
        return {}

    @property
    def cell(self) -> str:
        return self.group.cell

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks of the group; empty where no rank in particular is suspected."""
        return self.group.ranks

    def of(self, kind: type[F], rank: int | AnyRank | None = ANY) -> tuple[F, ...]:
        """The facts of this kind in the group's cell."""
        return self.facts.of(kind, cell=self.cell, rank=rank)

    def _of_ranks(self, kind: type[F], ranks: Iterable[int]) -> list[F]:
        """The facts of this kind about these ranks; of thousands none is asked for one by one where
        nothing of the kind was seen.
        """
        if not self.of(kind):
            return []
        return [fact for rank in ranks for fact in self.of(kind, rank=rank)]

    def one(self, kind: type[F], rank: int | AnyRank | None = ANY) -> F | None:
        """The first fact of this kind in the group's cell."""
        return self.facts.one(kind, cell=self.cell, rank=rank)

    @property
    def parted(self) -> Divergence | None:
        """Where the ranks made different calls; None also where one of them only made fewer."""
        found = self.group.divergence
        return found if found is not None and found.kind not in ("missing", "left-out") else None

    @cached_property
    def world(self) -> tuple[int, ...]:
        """All ranks of the cell, seen or not."""
        shown = {
            fact.rank
            for kind in (RankEnding, MainThread)
            for fact in self.of(kind)
            if fact.rank is not None
        }
        # each of them is one of those that the range would add
        unknown = any(pid_of(rank) is not None for rank in shown)
        return tuple(
            sorted({*(() if unknown else range(self.group.world_size)), *self.group.ranks, *shown})
        )

    @cached_property
    def suspects(self) -> tuple[int, ...]:
        """The group's ranks; every rank where the group blames the code, the host or the launch."""
        return self.group.ranks or self.world

    @cached_property
    def others(self) -> tuple[int, ...]:
        suspects = frozenset(self.suspects)
        return tuple(rank for rank in self.world if rank not in suspects)

    def endings(self, ranks: Iterable[int]) -> tuple[RankEnding, ...]:
        """How these ranks ended, without those that never ran; any end in a log without ranks."""
        found = self._of_ranks(RankEnding, ranks)
        found += (
            [fact for fact in self.of(RankEnding, rank=None) if fact.place is not None]
            if not self.group.ranks
            else ()
        )
        return tuple(fact for fact in found if fact.role == "rank" and fact.how != "not_run")

    @cached_property
    def first_ending(self) -> RankEnding | None:
        """The suspects' earliest end that neither we nor the launcher brought about."""
        own = [
            fact
            for fact in self.endings(self.suspects)
            if not (fact.by_us or fact.by_launcher) and fact.how != "timed_out"
        ]
        return min(own, key=lambda fact: (fact.order is None, fact.order or 0), default=None)

    def exceptions(self, ranks: Iterable[int], *, echo: bool = False) -> tuple[RankException, ...]:
        """Uncaught exceptions of these ranks and their workers, or their echoes, earliest first."""
        found = self._of_ranks(RankException, ranks)
        nameless = self.of(RankException, rank=None) if not self.group.ranks else ()
        found += [fact for fact in nameless if fact.echo_of != "launcher"]
        kept = [fact for fact in found if fact.echo is echo and not fact.handled]
        return tuple(
            sorted(
                kept,
                key=lambda fact: (
                    fact.place is None,
                    fact.place or 0,
                    fact.at is None,
                    fact.at or 0.0,
                ),
            )
        )

    @cached_property
    def origin(self) -> RankException | None:
        """The suspects' earliest exception that is no echo."""
        return next(iter(self.exceptions(self.suspects)), None)

    @cached_property
    def own_frame(self) -> Frame | None:
        """The user's own line below which `origin` was raised."""
        return user_frame(self.origin.frames) if self.origin is not None else None

    @property
    def at_own_line(self) -> str:
        """` at train.py:88`; empty where no exception shows its frames."""
        return f" at {self.own_frame.where}" if self.own_frame is not None else ""

    def fatals(self, ranks: Iterable[int]) -> tuple[FatalSignal, ...]:
        found = self._of_ranks(FatalSignal, ranks)
        return tuple(found + list(self.of(FatalSignal, rank=None) if not self.group.ranks else ()))

    def thread(self, rank: int) -> MainThread | None:
        """Where the rank's main thread stands, by py-spy where that could look."""
        return self._threads.get(rank)

    @cached_property
    def _threads(self) -> dict[int | None, MainThread]:
        found: dict[int | None, MainThread] = {}
        for fact in self.of(MainThread):
            if fact.role == "rank":
                known = found.setdefault(fact.rank, fact)
                if known.source != "py-spy" and fact.source == "py-spy":
                    found[fact.rank] = fact
        return found

    def threads(self, ranks: Iterable[int]) -> tuple[MainThread, ...]:
        if not self.of(MainThread):
            return ()
        return tuple(thread for rank in ranks if (thread := self.thread(rank)) is not None)

    def looks(self, rank: int) -> tuple[Thread, ...]:
        """The rank's main thread in every look, oldest first."""
        found = [
            fact
            for fact in self.of(Thread, rank=rank)
            if fact.role == "rank" and fact.main and not fact.native
        ]
        return tuple(sorted(found, key=lambda fact: fact.look))

    def waiting(self, ranks: Iterable[int]) -> tuple[MainThread, ...]:
        """Main threads of these ranks that wait for other ranks."""
        return tuple(thread for thread in self.threads(ranks) if waits_for_ranks(thread))

    def workers(self, ranks: Iterable[int]) -> tuple[MainThread, ...]:
        """Main threads of the loader workers of these ranks."""
        found = self._of_ranks(MainThread, ranks)
        return tuple(fact for fact in found if fact.role == "loader-worker")

    def children(self, ranks: Iterable[int]) -> tuple[MainThread, ...]:
        """Main threads of all processes below these ranks: loader workers, compilers and others."""
        found = self._of_ranks(MainThread, ranks)
        return tuple(fact for fact in found if fact.role not in ("rank", "launcher"))

    @property
    def live(self) -> Job | None:
        """The job as `attach` found it, where it still lives."""
        return self.one(Job)

    @cached_property
    def watch(self) -> Watch:
        """What each process of a live job does, by the same rule as the verdict."""
        return watch_of(self.facts, self.cell)

    def whole_path(self, path: str) -> str:
        """The path in full: a relative one lies in the job's working directory."""
        job = self.live
        if path and not path.startswith(("/", "~")) and job is not None and job.cwd:
            return f"{job.cwd.rstrip('/')}/{path.removeprefix('./')}"
        return path

    def process(self, rank: int) -> ProcessState | None:
        return self._processes.get(rank)

    @cached_property
    def _processes(self) -> dict[int | None, ProcessState]:
        found: dict[int | None, ProcessState] = {}
        for fact in self.of(ProcessState):
            if fact.role == "rank":
                found.setdefault(fact.rank, fact)
        return found

    def process_of(self, pid: int) -> ProcessState | None:
        return first_found(self.of_process(ProcessState, pid))

    def of_process(self, kind: type[P], pid: int) -> tuple[P, ...]:
        """All facts of a kind about one process, of which there are thousands."""
        key = Scene.of_process, kind, self.cell
        if key not in self.facts.derived:
            by_pid: dict[int | None, list[P]] = {}
            for fact in self.of(kind):
                by_pid.setdefault(fact.pid, []).append(fact)
            self.facts.derived[key] = {of: tuple(found) for of, found in by_pid.items()}
        found: tuple[P, ...] = self.facts.derived[key].get(pid, ())
        return found

    def progress(self, ranks: Iterable[int]) -> tuple[Progress, ...]:
        """What the witness counted in these ranks; ranks without a witness are left out."""
        found = self._of_ranks(Progress, ranks)
        return tuple(fact for fact in found if fact.witness)

    def calls(self, rank: int) -> tuple[CollectiveCall, ...]:
        return self.of(CollectiveCall, rank=rank)

    def site(self, file: str, line: int) -> SourceSite | None:
        key = Scene.site, self.cell
        if key not in self.facts.derived:
            by_line: dict[tuple[str, int], SourceSite] = {}
            for fact in self.of(SourceSite):
                by_line.setdefault((fact.file, fact.line), fact)
            self.facts.derived[key] = by_line
        found: SourceSite | None = self.facts.derived[key].get((file, line))
        return found

    def sites(self, frames: Iterable[Frame]) -> tuple[SourceSite, ...]:
        """The source around these frames, where it was read."""
        if not self.of(SourceSite):
            return ()
        return tuple(
            site for frame in frames if (site := self.site(frame.file, frame.line)) is not None
        )

    def checks(self, *names: str, bad_only: bool = True) -> tuple[HostCheck, ...]:
        """Checks by name, by default those that did not pass; in `ready` of the group's hosts."""
        found = [
            fact for fact in self.facts.of(HostCheck) if fact.name in names and self._of_them(fact)
        ]
        return tuple(fact for fact in found if not bad_only or fact.status in ("fail", "warn"))

    def failed_check(self, *names: str) -> HostCheck | None:
        """The first check of these names that failed or warned."""
        return next(iter(self.checks(*names)), None)

    def _of_them(self, check: HostCheck) -> bool:
        group = self.group
        return not group.unready or (
            check.host in group.hosts
            and (check.name in group.unready or check.status not in ("warn", "fail"))
        )

    def given(self, name: str) -> Given | None:
        """A limit, a version or a setting of the surroundings (facts.given lists the names)."""
        found = [fact for fact in self.facts.of(Given) if fact.name == name]
        return next((fact for fact in found if fact.source == "log"), found[0] if found else None)

    def limit(self, name: str) -> float | None:
        """A number of the surroundings, such as `limit.nofile`; None where it is not known."""
        given = self.given(name)
        return given.number if given is not None else None

    def events(self, *shows: str) -> tuple[LogEvent, ...]:
        """Known lines of the suspects or without a rank that show one of these, earliest first."""
        found = [
            fact
            for fact in self.of(LogEvent)
            if fact.event in shows and (fact.rank is None or fact.rank in self.suspects)
        ]
        return tuple(sorted(found, key=lambda fact: fact.place if fact.place is not None else -1))

    @cached_property
    def first_failure(self) -> LogFailure | None:
        """The first failure of this attempt; an echo only where there is nothing else."""
        failures = self.of(LogFailure)
        own = [failure for failure in failures if not failure.echo]
        return min(own or failures, key=lambda failure: failure.order, default=None)

    @property
    def memory(self) -> MemoryLimit | None:
        """The cgroup of this group's hosts; None if unknown."""
        return next(
            (
                fact
                for fact in self.of(MemoryLimit)
                if not fact.host or fact.host in self.group.hosts
            ),
            None,
        )

    @property
    def oom_kills(self) -> tuple[OomKill, ...]:
        """The kernel's kills for lack of memory, on the group's hosts where they are known."""
        hosts = self.group.hosts
        return tuple(
            kill
            for kill in self.facts.of(OomKill)
            if not isinstance(kill.pid, HostPid) or not hosts or kill.pid.host in hosts
        )

    @property
    def plan(self) -> Plan:
        return self.facts.one(Plan) or Plan()

    def looked(self, kind: str) -> bool:
        """Was such a look made in this cell? Only then may something be called absent."""
        return self.facts.looked(kind, cell=self.cell)
