"""Steps that ranks say: when one is missing, and what is told of the pace."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainprobe.supervise.heartbeats import Beat
from trainprobe.supervise.looks import Look
from trainprobe.supervise.pace_watch import LOOK_TAKES_S, PaceWatch
from trainprobe.supervise.rhythm import SOONEST_S


@dataclass
class Rank:
    newest: list[Beat] = field(default_factory=list)
    phase: str = ""
    rank: int | None = None


class Beats:
    """The files of two ranks, as a test fills them."""

    def __init__(self) -> None:
        self.ranks = {11: Rank(rank=0), 12: Rank(rank=1)}

    def read(self) -> None:
        """There are no files."""

    def forget(self, pid: int) -> None:
        del self.ranks[pid]


class Job:
    def __init__(self) -> None:
        self.beats = Beats()
        self.watch = PaceWatch(self.beats, self.watch_rank)  # type: ignore[arg-type]
        self.at, self.step, self.cpu = 100.0, 0, {11: 0.0, 12: 0.0}
        self.says: list[str] = []

    def watch_rank(self, pid: int) -> int | None:
        return self.beats.ranks[pid].rank

    def go(self, steps: int, step_s: float = 1.0, late: float = 0.0) -> None:
        for _ in range(steps):
            self.step, self.at = self.step + 1, self.at + step_s + late
            for pid, rank in self.beats.ranks.items():
                self.cpu[pid] += step_s + (late if pid == 12 else 0.0)
                rank.newest = [Beat(self.step, self.at, self.cpu[pid])]
            self.watch.read()
            self.says += [finding.says for finding in self.watch.findings()]


def test_a_missing_step_is_a_suspicion_so_that_the_look_is_over_after_three_of_them() -> None:
    job = Job()
    assert job.watch.suspicion(job.at) is None
    assert not job.watch.steady(job.at), "nobody has said a step"
    job.go(20, step_s=4.0)
    assert job.watch.steady(job.at + 12.0 - LOOK_TAKES_S - 0.1)
    found = job.watch.suspicion(job.at + 12.0 - LOOK_TAKES_S)
    assert found is not None
    assert (found.kind, found.since, found.may_last_s) == ("no-step", job.at, 12.0)


def test_a_step_that_takes_twice_as_long_as_others_is_not_looked_at() -> None:
    job = Job()
    job.go(20, step_s=2.0)
    assert job.watch.steady(job.at + 3.9)
    assert not job.watch.steady(job.at + 4.1)


def test_short_steps_are_given_the_time_that_a_look_needs() -> None:
    job = Job()
    job.go(20, step_s=0.01)
    assert job.watch.suspicion(job.at + SOONEST_S - 0.1) is None
    assert job.watch.suspicion(job.at + SOONEST_S) is not None


def test_in_a_phase_no_step_is_missed() -> None:
    job = Job()
    job.go(20)
    job.beats.ranks[11].phase = "checkpoint"
    assert job.watch.suspicion(job.at + 600) is None
    assert not job.watch.steady(job.at + 600), "other signs count then"


def test_one_rank_behind_is_enough() -> None:
    job = Job()
    job.go(20)
    behind = job.at
    job.at += 10
    job.beats.ranks[11].newest = [Beat(21, job.at, 30.0)]
    job.beats.ranks[12].newest = []
    job.watch.read()
    found = job.watch.suspicion(job.at)
    assert found is not None
    assert found.since == behind
    job.watch.forget(12)
    assert job.watch.suspicion(job.at) is None


def test_a_straggler_is_told_once_with_its_number() -> None:
    job = Job()
    job.go(100)
    assert job.says == []
    job.go(200, late=0.2)
    late = [one for one in job.says if "holds the others up" in one]
    assert len(late) == 1
    assert late[0].startswith("Rank 1 ")
    assert [one for one in job.says if one not in late] == [], "a fifth longer is no drift"


def test_steps_while_the_job_is_looked_at_say_nothing_of_its_pace() -> None:
    job = Job()
    job.go(20)
    job.at += 50
    for pid, rank in job.beats.ranks.items():
        rank.newest = [Beat(99, job.at, job.cpu[pid])]
    job.watch.read(disturbed=True)
    assert job.watch.times.median_s() == 1.0
    assert job.watch.steady(job.at + 1)


def test_a_look_tells_work_from_waits() -> None:
    def look(*states: str) -> Look:
        return Look("healthy", report={"world": {"ranks": [{"state": one} for one in states]}})

    assert look("waiting", "computing").works
    assert not look("waiting", "waiting").works
    assert not Look("").works


def test_a_rank_that_waits_for_a_processor_while_the_others_wait_for_it_holds_them_up() -> None:
    job = Job()
    busy, says = {11: 0.0, 12: 0.0}, ""
    for step in range(60):
        job.at += 1.0
        for pid, rank in job.beats.ranks.items():
            job.cpu[pid] += 0.1
            busy[pid] += 0.9 if pid == 12 else 0.6
            rank.newest = [Beat(step, job.at - 0.05, job.cpu[pid])]
        job.watch.read(at=job.at, busy_s=dict(busy))
        says += "".join(finding.says for finding in job.watch.findings())
    assert says.startswith("Rank 1 holds the others up")
