"""Whole jobs that poll: their naps say nothing, what the looks and the connections show does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.waits.live_rows import MAIN, SITE, STD, job, own, process, rank, site, view
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.stillness import Stillness

GET = (*own("batches", 20), Frame("Queue.get", STD + "queue.py", 180))
BATON = (*own("build", 12), Frame("FileBaton.wait", SITE + "torch/utils/file_baton.py", 50))
RETRY = (
    *own("fetch", 30),
    Frame("Retrying.__call__", SITE + "tenacity/__init__.py", 475),
    Frame("sleep", SITE + "tenacity/nap.py", 31),
)
IN_LOOP = site(20, "yield q.get(timeout=0.5)", ("while", "while True:"))


def polling(stack: tuple[Frame, ...], at_least_s: float, at_most_s: float | None) -> list[object]:
    more = {
        "age_s": 0.04,
        "wchan": "hrtimer_nanosleep",
        "stillness": Stillness(at_least_s, at_most_s, wakes=True),
        "looked_s": 5.3,
    }
    return [rank(number, stack, stack, stack, **more) for number in (0, 1)]


@pytest.mark.parametrize(
    "stack",
    [GET, BATON, RETRY],
    ids=["a queue with a timeout", "a stale lock of a build", "a library that tries again"],
)
@pytest.mark.parametrize(
    ("at_least_s", "at_most_s", "verdict", "conclusive"),
    [
        (5.3, 300.0, "hung", True),
        (0.04, 0.3, "healthy", True),
        (0.04, 3.0, "undetermined", False),
        (0.04, 300.0, "undetermined", False),
        (0.04, None, "undetermined", False),
    ],
    ids=[
        "at one place and silent",
        "they talk",
        "they talked three seconds ago",
        "nobody knows for how long",
        "nothing tells",
    ],
)
def test_a_job_that_polls_is_judged_by_its_place_and_not_by_its_naps(
    stack: tuple[Frame, ...],
    at_least_s: float,
    at_most_s: float | None,
    verdict: str,
    *,
    conclusive: bool,
) -> None:
    found = view(job(2), *polling(stack, at_least_s, at_most_s), IN_LOOP)  # type: ignore[arg-type] # rows of facts

    assert (found.verdict, found.conclusive) == (verdict, conclusive), found.says
    assert bool(found.next_look) is (verdict == "undetermined")


def test_a_process_without_torch_that_polls_is_said_to_be_no_training() -> None:
    looks = polling(GET, 0.04, 300.0)[:1]

    found = view(replace(job(1), torch=False), *looks, IN_LOOP)  # type: ignore[arg-type] # rows of facts

    assert (found.verdict, found.next_look) == ("undetermined", "")
    assert "no sign of a training job" in found.says


def test_a_loop_that_keeps_the_pace_of_a_job_that_talks_is_no_hang() -> None:
    pace = own("limiter", 7)

    found = view(
        job(2),
        *polling(pace, 0.04, 0.6),  # type: ignore[arg-type]
        site(7, "time.sleep(0.05)", ("while", "while time.time() < next_at:")),
    )  # as above

    assert (found.verdict, found.conclusive) == ("healthy", True)


@pytest.mark.parametrize(("state", "verdict"), [("R", "healthy"), ("S", "hung")])
def test_who_asks_for_the_end_of_a_command_waits_for_what_that_does(
    state: str, verdict: str
) -> None:
    asks = own("convert", 8)
    child = process(
        555, own("main", 3), own("main", 3), role="child", rank=1, ppid=101, state=state
    )
    loop = site(8, "time.sleep(0.1)", ("while", "while p.poll() is None:"))

    found = view(
        job(2), rank(0), rank(1, asks, asks, age_s=0.04, wchan="hrtimer_nanosleep"), child, loop
    )

    assert found.verdict == verdict


TRAINS = ("while", "while True:")


def test_a_sum_over_a_generator_is_work_inside_whatever_loop() -> None:
    line, inside = (MAIN,), (MAIN, Frame("<genexpr>", "/job/train.py", 99))
    text = site(99, "s = sum(i * i for i in range(10**8))", TRAINS)

    assert (
        view(job(2), rank(0), rank(1, inside, line, inside, state="R", gil=True), text).verdict
        == "healthy"
    )


def test_a_call_of_c_that_gets_little_of_a_crowded_machine_is_work() -> None:
    line = own("mix", 12)
    crowded = {"state": "R", "cpu_s": 0.2, "switches": 2, "looks": 3}

    assert (
        view(
            job(2), rank(0), rank(1, line, line, line, **crowded), site(12, "c = chain(a)", TRAINS)
        ).verdict
        == "healthy"
    )


def test_who_asks_again_and_again_waits_for_a_rank_that_has_not_come_as_far() -> None:
    asks = (MAIN, Frame("checkpoint", "/job/train.py", 71))
    before = (MAIN, Frame("checkpoint", "/job/train.py", 67), Frame("load", "/job/train.py", 25))
    loop = site(71, "time.sleep(0.2)", ("while", "while len(os.listdir(folder)) < world:"))
    more = {
        "age_s": 0.04,
        "wchan": "hrtimer_nanosleep",
        "stillness": Stillness(5.3, 300.0, wakes=True),
    }

    found = view(
        job(3),
        rank(0, asks, asks, asks, looked_s=5.3, **more),
        rank(2, asks, asks, asks, looked_s=5.3, **more),
        rank(1, before, before, before, age_s=10.0),
        site(25, "return line.recv(4096)"),
        loop,
    )

    assert (found.verdict, found.groups[0].ranks, found.groups[0].victims) == ("hung", (1,), (0, 2))


def test_who_comes_to_a_sleep_for_one_thing_after_the_other_goes_on() -> None:
    forward = (*own("run", 49), Frame("_call_impl", SITE + "torch/nn/modules/module.py", 1789))
    sleeps = (*forward, Frame("Encoder.forward", "/job/train.py", 27))
    more = {"age_s": 0.2, "wchan": "hrtimer_nanosleep", "looked_s": 5.3, "switches": 23}
    more["stillness"] = Stillness(5.3, 6.6, wakes=True)
    ranks = [rank(number, sleeps, sleeps, sleeps, **more) for number in (0, 1)]
    line = site(27, "time.sleep(cost)")

    for_each = view(
        job(2), *ranks, line, site(49, "loss = model(doc)", ("for", "for doc in docs:"))
    )
    again = view(job(2), *ranks, line, site(49, "ok = ask()", ("for", "for attempt in range(9):")))

    assert for_each.verdict == "healthy"
    assert again.verdict == "hung"
