"""One running cell: its processes, their signs of life and looks at them, refreshed by `tick`."""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Callable, Sequence

from trainprobe.case import Case
from trainprobe.collect import procfs
from trainprobe.collect.collector import JobView, collect
from trainprobe.collect.collectors import locks
from trainprobe.collect.collectors.cgroup import CgroupWatch
from trainprobe.collect.collectors.source import look_at_source, sites_in_stacks
from trainprobe.collect.members import Member
from trainprobe.collect.thread_history import CellLooks, ThreadHistory, look_once, looked_at
from trainprobe.ladder import events
from trainprobe.ladder.launch import LAUNCHER, Launch
from trainprobe.ladder.outcome import failed
from trainprobe.ladder.pace import Pace
from trainprobe.ladder.policy import Now, RankNow
from trainprobe.ladder.resource_use import Use
from trainprobe.ladder.signs_of_life import Signs
from trainprobe.ladder.team import Mate, team_of
from trainprobe.model.evidence import Evidence
from trainprobe.system.interruption import Interruption
from trainprobe.system.keeper import Keeper

TICK_S = 0.05
SIGNS_S = 0.1
CGROUPS_S = 0.2
STATES_S = 0.5
BEAT_S = 1.0
MEMBERS_CAP = 96


class Looks:
    """Takes the looks at one cell and numbers them over all series."""

    def __init__(self, case: Case, cell: str, pace: Pace, cwd: str) -> None:
        self.case, self.cell, self.pace, self.cwd = case, cell, pace, cwd
        self.number = 0

    def take(self, members: Sequence[Member], hurry: Callable[[], bool]) -> CellLooks:
        """Look twice, and a third time later when the main threads are undecided; `hurry` tells
        whether the user has asked to stop.
        """
        watched = [
            ThreadHistory(member)
            for member in {member.pid: member for member in members[:MEMBERS_CAP]}.values()
        ]
        stacks = self._once(watched)
        if not hurry():
            self._pause(self.pace.between_looks_s, hurry)
            stacks += self._once(watched)
            looked = looked_at(watched, self.number)
            if looked.moving in ("moving", "busy") and not hurry():
                # The third look tells a slow loop from a wait: a thread that moves now and is in
                # the same place later polls.
                self._pause(self.pace.third_look_s, hurry)
                stacks += self._once(watched)
        job = JobView([each.member for each in watched], cell=self.cell)
        collect(self.case, locks.COLLECTOR, job)
        look_at_source(self.case, self.cell, sites_in_stacks(stacks), cwd=self.cwd)
        return looked_at(watched, self.number)

    def _once(self, watched: Sequence[ThreadHistory]) -> list[Evidence]:
        self.number += 1
        return look_once(self.case, self.cell, watched, self.number)

    def _pause(self, pause_s: float, hurry: Callable[[], bool]) -> None:
        ends = time.monotonic() + pause_s
        while (left_s := ends - time.monotonic()) > 0 and not hurry():
            time.sleep(min(0.05, left_s))


class Watch:
    """Knows which processes exist and when each last showed a sign of life. Moments are seconds
    since the cell began.
    """

    def __init__(
        self,
        launch: Launch,
        keeper: Keeper,
        case: Case,
        pace: Pace,
        cwd: str,
        interruption: Interruption,
    ) -> None:
        self.launch, self.keeper, self.case, self.pace = launch, keeper, case, pace
        self.interruption = interruption
        self.cgroups = CgroupWatch()
        outputs = [
            (spec.rank, path)
            for spec in launch.specs
            for path in dict.fromkeys((spec.stdout, spec.stderr))
        ]
        self.signs = Signs(launch.witness_dir, outputs)
        self.looks = Looks(case, launch.cell, pace, cwd)
        self.began_at = time.time()
        self._clock = time.monotonic()
        self._due: dict[str, float] = {}
        self._stopped: dict[int, float] = {}
        self._beat_at = 0.0
        self.use = Use()
        self.quiet_s = 0.0  # the longest silence after the first sign that a sign has ended
        self._sign_at = 0.0
        self.looked_at: float | None = None
        self.looked: CellLooks | None = None

    def start(self) -> None:
        """Start everything. The clock of the cell begins here."""
        self.began_at, self._clock = time.time(), time.monotonic()
        self.keeper.start(self.launch.specs)
        self.cgroups.see(self.keeper.alive_pids())

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._clock

    def tick(self) -> None:
        """Wait for news, at most `TICK_S`, and take in what is due."""
        self.keeper.wait(TICK_S)
        if self._is_due("signs", SIGNS_S):
            self.signs.read()
        if self._is_due("cgroups", CGROUPS_S):
            self.cgroups.see(self.keeper.alive_pids())
        if self._is_due("states", STATES_S):
            self._see_states()
        if not self.launch.events:  # a probe measures itself
            self.use.sample(self.keeper.alive_pids())
        if self.launch.logs and self._is_due("logs", STATES_S):
            self.find_logs()
        if self.launch.witness_dir and self._is_due("beat", BEAT_S) and self.signs.beat():
            self._beat_at = self.elapsed_s

    def team(self) -> tuple[Mate, ...]:
        ranks = {pid: witnessed.rank for pid, witnessed in self.signs.by_pid.items()}
        return team_of(self.launch, self.keeper, ranks)

    def running(self) -> bool:
        return self.keeper.running()

    def answer_failed(self) -> bool:
        """Whether a process of a probe has ended without the answer yes."""
        return any(
            events.read(self.launch.events[spec.rank]).answer[0] != "yes"
            for spec in self.launch.specs
            if self.keeper.children[spec.key].ended is not None
        )

    def alive_members(self) -> list[Member]:
        return [mate.member for mate in self.team() if mate.alive and mate.member.pid]

    def look(self) -> CellLooks:
        """Look at every living process."""
        self.looked = self.looks.take(self.alive_members(), lambda: self.interruption.asked)
        self.looked_at = self.elapsed_s
        self.keeper.poll()
        return self.looked

    def stopped_for_s(self) -> float:
        """The seconds for which the longest stopped process has been stopped."""
        return max((self.elapsed_s - since for since in self._stopped.values()), default=0.0)

    def now(self) -> Now:
        """Collect what the policy needs."""
        team = self.team()
        newest: dict[int, Mate] = {}
        for mate in team:
            if mate.is_rank and mate.member.rank is not None:
                newest[mate.member.rank] = mate  # a later one is a restart
        alone = len(newest) <= 1
        ranks = []
        for rank, mate in sorted(newest.items()):
            pid, ended_at = mate.member.pid, mate.ended.at if mate.ended else None
            witnessed = self.signs.by_pid.get(pid)
            now = RankNow(
                rank,
                mate.ended,
                ended_at=self._moment(ended_at) if ended_at else self.elapsed_s,
                steps=self.signs.steps(rank, alone=alone),
                sign_at=max(self._moment(self.signs.sign_at(rank)), self._beat_at),
                stopped_since=self._stopped.get(pid),
                leaving=witnessed is not None and witnessed.leaving,
            )
            ranks.append(now)
        launcher = self.keeper.children[LAUNCHER].ended if self.launch.command else None
        sign_at = max(self._moment(self.signs.last_at()), self._beat_at)
        if self._sign_at:
            self.quiet_s = max(self.quiet_s, sign_at - self._sign_at)
        self._sign_at = sign_at
        return Now(
            at=self.elapsed_s,
            running=self.keeper.running(),
            ranks=ranks,
            sign_at=sign_at,
            looked_at=self.looked_at,
            launcher_failed_at=(
                self._moment(launcher.at)
                if launcher is not None and failed(launcher) and launcher.at
                else None
            ),
        )

    def collectives_seen(self) -> bool:
        """Whether any rank's journal holds a collective."""
        self.signs.beat()
        return self.signs.any_collective

    def find_logs(self) -> list[tuple[int, str, str]]:
        """Return (rank, stream, path) of the files that torchrun writes for each rank in
        its last attempt; watch them from now on.
        """
        found = rank_logs(self.launch.logs, self.launch.first)
        for rank, _, path in found:
            self.signs.add_output(rank, path)
        return found

    def _see_states(self) -> None:
        alive = set()
        for mate in self.team():
            if mate.alive and mate.member.pid and mate.member.role in ("rank", "launcher"):
                alive.add(mate.member.pid)
                now = procfs.stat(mate.member.pid)
                if now is not None and now.state in procfs.STOPPED_STATES:
                    self._stopped.setdefault(mate.member.pid, self.elapsed_s)
                else:
                    self._stopped.pop(mate.member.pid, None)
        for pid in set(self._stopped) - alive:
            del self._stopped[pid]

    def _moment(self, at: float) -> float:
        return max(0.0, at - self.began_at) if at else 0.0

    def _is_due(self, name: str, every_s: float) -> bool:
        clock = time.monotonic()
        if clock < self._due.get(name, 0.0):
            return False
        self._due[name] = clock + every_s
        return True


def rank_logs(folder: str, first: int = 0) -> list[tuple[int, str, str]]:
    """Find `<run>_x/attempt_<n>/<local rank>/{stdout,stderr}.log`
    (torch/distributed/elastic/multiprocessing/api.py); `first` is the rank that is local rank 0.
    """
    return [
        (rank, stream, path) for (rank, stream), path in _last_attempt(folder, first, "std*.log")
    ]


def error_logs(folder: str, first: int = 0) -> dict[int, str]:
    """Find torchrun's error.json per rank, the last attempt's; `first` is the rank that is local
    rank 0.
    """
    return {rank: path for (rank, _), path in _last_attempt(folder, first, "error.json")}


def _last_attempt(folder: str, first: int, name: str) -> list[tuple[tuple[int, str], str]]:
    found: dict[tuple[int, str], tuple[int, str]] = {}
    pattern = os.path.join(glob.escape(folder), "*", "attempt_*", "*", name)
    for path in glob.glob(pattern) if folder else ():
        parts = path.split(os.sep)
        attempt, rank, stem = parts[-3].rpartition("_")[2], parts[-2], parts[-1].partition(".")[0]
        if attempt.isdecimal() and rank.isdecimal():
            key = (first + int(rank), stem)
            found[key] = max(found.get(key, (-1, "")), (int(attempt), path))
    return [(key, path) for key, (_, path) in sorted(found.items())]
