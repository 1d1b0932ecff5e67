"""A job whose ranks all spend their steps on calls to a service that is slow."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.waits import live_rows
from tests.unit.waits.live_rows import ALL_REDUCE, SITE, STD, job, own, rank, view
from trainprobe.causes.scene import Scene
from trainprobe.causes.software.remote_service_wait import CAUSE
from trainprobe.facts import Facts, Samples, Spell
from trainprobe.model.facts import Fact
from trainprobe.stacks.asking import asks_in
from trainprobe.stacks.frames import Frame

ASKS = (
    *own("lookup", 27),
    Frame("urlopen", STD + "urllib/request.py", 216),
    Frame("HTTPConnection.getresponse", STD + "http/client.py", 1374),
    Frame("SocketIO.readinto", STD + "socket.py", 706),
)
NAPS = own("lookup", 33)
COMPUTES = (*own("forward", 8), Frame("linear", SITE + "torch/nn/functional.py", 9))
STEP_S = 2.0


def sampled(number: int, asks_s: float, steps: int) -> Samples:
    """In each step it asks for so long, naps a little in the same function, computes and meets."""
    spells: list[Spell] = []
    for step in range(steps):
        at = step * STEP_S
        cuts = (at, at + 0.8 * asks_s, at + asks_s, at + STEP_S - 0.05, at + STEP_S)
        stacks = (ASKS, NAPS, COMPUTES, ALL_REDUCE)
        leaves = ("net-io", "python-run", "python-run", "comm-wait")
        for place, (stack, leaf) in enumerate(zip(stacks, leaves, strict=True)):
            spells.append(Spell(cuts[place], cuts[place + 1], stack, leaf))
    return Samples(("E8",), "job", number, pid=100 + number, host="node7", spells=tuple(spells))


def facts(asks_s: float, steps: int = 5) -> list[Fact]:
    moving = [fact for number in range(2) for fact in rank(number, own("step", 5), own("step", 7))]
    return [*moving, *(sampled(number, asks_s, steps) for number in range(2))]


def test_ranks_that_all_ask_in_every_step_are_slow() -> None:
    found = view(job(2), facts(1.8))

    assert (found.verdict, found.groups[0].ranks) == ("slow", ())
    assert "on calls to a service" in found.says

    known: Facts = live_rows.facts_of(job(2), facts(1.8))
    scene = Scene(known, found.groups[0])
    assert sum(one.points for one in CAUSE.weigh(scene)) == 19
    assert "train.py:33" in CAUSE.summary(scene) or "train.py:27" in CAUSE.summary(scene)


def test_a_call_now_and_then_or_one_download_is_none_of_it() -> None:
    assert view(job(2), facts(0.4)).verdict == "healthy"

    once = [
        replace(one, spells=one.spells[:1]) if isinstance(one, Samples) else one
        for one in facts(STEP_S - 0.05, steps=1)
    ]
    assert view(job(2), once).verdict != "slow"


def test_who_sleeps_in_a_function_that_asks_nobody_does_not_ask() -> None:
    asks = asks_in([ASKS, COMPUTES])
    assert [asks(stack) for stack in (ASKS, NAPS, COMPUTES, ALL_REDUCE)] == [
        True,
        True,
        False,
        False,
    ]
