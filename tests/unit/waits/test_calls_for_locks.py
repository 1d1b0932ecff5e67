"""A library that asks for a file's lock again and again within one call, and who frees it."""

from __future__ import annotations

from tests.unit.waits.live_rows import (
    ALL_REDUCE,
    CELL,
    facts_of,
    job,
    own,
    process,
    rank,
    site,
    view,
)
from trainprobe.facts import HeldLock, LockWait, OpenFile
from trainprobe.model.facts import Fact
from trainprobe.waits.deadlines import lock_holder

INSERT = own("record", 10)
RUNS = "/job/runs.db"


def database(holder: int) -> list[Fact | list[Fact]]:
    """Rank 1 asks for a database that `holder` has locked."""
    return [
        rank(1, INSERT, INSERT, wchan="hrtimer_nanosleep"),
        site(10, 'self.db.execute("insert into runs values (?)", row)'),
        OpenFile(("E8",), CELL, 1, pid=101, fd=13, path=RUNS, kind="file", mode="rw"),
        HeldLock(("E9",), CELL, None, pid=holder, path=RUNS, kind="POSIX", mode="WRITE"),
    ]


def test_a_transaction_of_a_rank_that_waits_in_a_collective_is_a_circle() -> None:
    found = view(job(2), rank(0, ALL_REDUCE, ALL_REDUCE), *database(100))

    assert [group.ranks for group in found.groups] == [(0, 1)]
    assert found.groups[0].how == "cycle"
    assert RUNS in found.says


def test_one_that_sleeps_by_itself_asks_for_no_lock() -> None:
    rows = database(100)
    rows[1] = site(10, "time.sleep(5)")

    found = view(job(2), rank(0, ALL_REDUCE, ALL_REDUCE), *rows)

    assert [group.ranks for group in found.groups] == [(1,)]


def test_a_holder_outside_of_the_job_is_to_be_looked_at_before_the_job_is_killed() -> None:
    held = LockWait(("E7",), CELL, None, pid=101, holder_pid=555, path="/cache/x.lock")
    facts = facts_of(job(2), rank(0), rank(1, INSERT, INSERT), process(555, role="other"), held)
    now = view(job(2), rank(0), rank(1, INSERT, INSERT), held)

    assert lock_holder(facts, now, [101, 555]) == 555
    assert lock_holder(facts, now, [100]) is None


def test_a_rank_that_holds_the_lock_is_not_to_be_ended_alone() -> None:
    facts = facts_of(job(2), rank(0), *database(100))

    assert lock_holder(facts, view(job(2), rank(0), *database(100)), [100]) is None
