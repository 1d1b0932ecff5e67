"""Who waits for whom where ranks call each other through torch's RPC."""

from __future__ import annotations

from tests.unit.waits.live_rows import MAIN, SITE, STD, job, own, rank, view
from trainprobe.stacks.frames import Frame

RPC = SITE + "torch/distributed/rpc/"
ASKS = Frame("rpc_sync", RPC + "api.py", 842)
ANSWERS = Frame("_run_function", RPC + "internal.py", 209)
IDLE = (MAIN, Frame("shutdown", RPC + "api.py", 345), Frame("wait", STD + "threading.py", 327))
CALLS = (*own("drive", 22), ASKS)
FUTURE = (*own("drive", 22), Frame("Future.wait", SITE + "torch/futures/__init__.py", 80))
NESTED = (ANSWERS, *own("train", 40)[1:], ASKS)
LOCKED = (ANSWERS, *own("push", 45)[1:], Frame("wait", STD + "threading.py", 327))


def test_a_caller_waits_for_the_rank_that_answers_and_not_for_an_idle_one() -> None:
    for call in (CALLS, FUTURE):
        found = view(job(3), rank(0, call, call), rank(1, NESTED, NESTED), rank(2, IDLE, IDLE))

        assert found.verdict == "hung"
        assert [group.ranks for group in found.groups] == [(1,)]
        assert found.groups[0].victims == (0,)


def test_all_callers_wait_for_the_server_whose_threads_stand() -> None:
    callers = [fact for number in (1, 2) for fact in rank(number, CALLS, CALLS)]

    found = view(job(3), rank(0, LOCKED, LOCKED), callers)

    assert (found.verdict, found.groups[0].ranks, found.groups[0].victims) == ("hung", (0,), (1, 2))


def test_a_server_that_works_at_the_call_makes_it_no_hang() -> None:
    busy = (ANSWERS, *own("train", 40)[1:]), (ANSWERS, *own("train", 41)[1:])

    found = view(job(2), rank(0, CALLS, CALLS), rank(1, *busy, state="R", age_s=0.0))

    assert found.verdict == "healthy"


def test_the_threads_of_rpc_in_a_rank_that_leaves_are_no_work() -> None:
    poll = {"all_cpu_s": 0.9, "looked_s": 1.0}
    leaves = rank(0, IDLE, IDLE, **poll), rank(3, IDLE, IDLE, **poll)

    found = view(job(4), *leaves, rank(1, CALLS, CALLS), rank(2, CALLS, CALLS))

    assert found.verdict == "hung"
