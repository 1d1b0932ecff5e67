"""When a job behaves unlike itself: made-up half seconds, no processes."""

from __future__ import annotations

from trainprobe.supervise.rhythm import (
    LATEST_S,
    SILENT_S,
    SOONEST_S,
    Gaps,
    Rhythm,
    Suspicion,
    limit_s,
)

RANKS = (11, 12, 13)


class Job:
    """Ranks of which a test says in each half second who works and whether a line is printed."""

    def __init__(self) -> None:
        self.rhythm, self.at, self.output = Rhythm(), 100.0, 0

    def go(self, seconds: float, *working: int, prints_every: float = 0.0) -> Suspicion | None:
        """Return the first suspicion of that time, None where there is none."""
        first = None
        ends, prints = self.at + seconds, self.at + prints_every
        while self.at < ends - 0.01:
            self.at += 0.5
            if prints_every and self.at >= prints:
                self.output, prints = self.output + 80, prints + prints_every
            self.rhythm.note(self.at, {rank: rank in working for rank in RANKS}, self.output)
            first = first or self.rhythm.suspicion(self.at)
        return first

    def steps(self, count: int, work_s: float, pause_s: float) -> Suspicion | None:
        found = None
        for _ in range(count):
            at_work, at_rest = self.go(work_s, *RANKS), self.go(pause_s)
            found = found or at_work or at_rest
        return found


def test_a_job_that_works_is_not_suspicious() -> None:
    assert Job().go(600, *RANKS) is None


def test_a_job_that_stops_is_suspicious_before_a_look_could_call_it_hung() -> None:
    job = Job()
    job.go(30, *RANKS)
    began = job.at
    found = job.go(5)
    assert found is not None
    assert (found.kind, found.since, found.ranks) == ("all-quiet", began, RANKS)
    assert SOONEST_S < 5.0


def test_one_rank_that_waits_while_another_works_is_suspicious_too() -> None:
    job = Job()
    job.go(30, *RANKS)
    found = job.go(5, 11)
    assert found is not None
    assert (found.kind, found.ranks) == ("some-quiet", (12, 13))


def test_a_rank_that_polls_and_seems_to_work_now_and_then_begins_no_new_pause() -> None:
    job = Job()
    job.go(30, *RANKS)
    began = job.at
    for _ in range(4):
        job.go(4.0)
        job.go(0.5, 11)
    job.go(4.0)
    found = job.rhythm.suspicion(job.at)
    assert found is not None
    assert (found.kind, found.since) == ("all-quiet", began)


def test_ranks_that_start_one_after_the_other_teach_one_pause() -> None:
    gaps = Gaps()
    for ended, length_s in ((20.0, 10.0), (23.0, 12.0), (26.0, 11.0), (27.0, 10.0)):
        gaps.add(length_s, ended)
    assert len(gaps) == 1
    for number in range(1, 4):  # one after the other
        gaps.add(10.0, 27.0 + 10 * number)
    assert len(gaps) == 4
    assert gaps.usual_s(60.0) == 10.0


def test_long_steps_are_learnt() -> None:
    job = Job()
    job.steps(3, 0.5, 5.0)
    assert job.steps(20, 0.5, 5.0) is None
    found = job.go(10)
    assert found is not None
    assert job.rhythm.suspicion(found.since + 5.0) is None


def test_a_long_pause_that_is_rare_is_not_taken_for_usual() -> None:
    job = Job()
    job.go(30, *RANKS)
    job.go(60)  # a checkpoint
    job.go(30, *RANKS)
    began = job.at
    job.go(4)
    found = job.rhythm.suspicion(job.at)
    assert found is not None
    assert found.since == began


def test_a_pause_that_comes_again_and_again_is_usual() -> None:
    job = Job()
    job.steps(5, 60, 20)
    assert job.steps(3, 60, 20) is None


def test_several_ranks_that_pause_together_pause_once() -> None:
    gaps = Gaps()
    for rank in range(8):
        gaps.add(60.0, 100.0 + rank / 100)
    assert gaps.usual_s(101.0) == 0.0


def test_what_was_usual_half_an_hour_ago_is_forgotten() -> None:
    gaps = Gaps()
    for at in (100.0, 200.0, 300.0):
        gaps.add(20.0, at)
    assert gaps.usual_s(301.0) == 20.0
    assert gaps.usual_s(5000.0) == 0.0


def test_gaps_take_bounded_memory() -> None:
    gaps = Gaps()
    for at in range(10_000):
        gaps.add(2.0, at * 10.0)
    assert len(gaps) <= 64


def test_a_job_that_computes_and_prints_no_more_is_suspicious() -> None:
    """Ranks that spin in a synchronisation look as busy as ever."""
    job = Job()
    assert job.go(60, *RANKS, prints_every=2.0) is None
    found = job.go(SILENT_S + 1, *RANKS)
    assert found is not None
    assert found.kind == "silent"


def test_a_job_that_never_prints_is_not_suspicious_for_that() -> None:
    job = Job()
    assert job.go(3, *RANKS, prints_every=1.0) is None
    assert job.go(300, *RANKS) is None


def test_a_sleep_of_our_own_is_no_pause_of_the_job() -> None:
    job = Job()
    job.go(30, *RANKS)
    job.go(2)
    job.at += 3600
    job.rhythm.forget_pause(job.at)
    assert job.go(3) is None


def test_a_rank_that_is_gone_waits_no_more() -> None:
    job = Job()
    job.go(10, *RANKS)
    job.go(2, 11, 12)
    job.at += 0.5
    job.rhythm.note(job.at, {11: True, 12: True}, 0)
    job.at += 60
    job.rhythm.note(job.at, {11: True, 12: True}, 0)
    assert job.rhythm.suspicion(job.at) is None


def test_limits_have_a_floor_and_a_ceiling() -> None:
    assert (limit_s(0.0), limit_s(10.0), limit_s(1e6)) == (SOONEST_S, 15.5, LATEST_S)
