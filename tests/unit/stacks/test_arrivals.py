"""Who comes last to the collectives, from samples of main threads."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest

from trainprobe.model.unnumbered import number_of
from trainprobe.stacks.arrivals import (
    AMONG_RANKS,
    Arrivals,
    Spans,
    arrivals,
    broken_up,
    steadily_last,
    together,
    too_long,
    turns_of,
    waited_in,
    worth_more,
)
from trainprobe.stacks.frames import Frame


def job(
    works: Sequence[Sequence[float]], places: Sequence[str] = (), apart_s: float = 0.0
) -> dict[int, Spans]:
    """Ranks that meet after each step; `works` has a row of seconds per step. The clock of rank n
    goes n times `apart_s` ahead.
    """
    found: dict[int, list[tuple[float, float, bool, str]]] = {}
    began = 0.0
    for step in works:
        ends = began + max(step) + 0.004
        for rank, took in enumerate(step):
            place = places[rank] if places else "train.py step"
            ahead = rank * apart_s
            found.setdefault(rank, []).extend(
                [
                    (began + ahead, began + took + ahead, False, place),
                    (began + took + ahead, ends + ahead, True, "train.py step"),
                ]
            )
        began = ends
    return dict(found)


def seen(works: Sequence[Sequence[float]], places: Sequence[str] = ()) -> Arrivals:
    return arrivals(job(works, places), {})


def test_a_rank_that_takes_a_quarter_longer_in_each_step_is_steadily_last() -> None:
    found = seen([(0.25, 0.25, 0.32)] * 14)
    assert (found.latest, found.last[2], found.rounds) == (2, 14, 14)
    assert found.share == pytest.approx(0.21, abs=0.03)
    assert steadily_last(found)


def test_two_rounds_are_too_few_to_say_so_and_more_are_worth_it() -> None:
    found = seen([(0.1, 1.2)] * 2)
    assert not steadily_last(found)
    assert worth_more(found)
    assert too_long(found)
    assert steadily_last(together([found, seen([(0.1, 1.2)] * 4)]))


def test_rounds_count_where_the_others_were_never_seen_outside() -> None:
    late = [(at, at + 1.15, False, "train.py step") for at in (0.0, 1.2, 2.4, 3.6, 4.8)]
    ends = [(end, end + 0.05, True, "train.py step") for _, end, _, _ in late]
    waits = [(0.0, 6.0, True, "train.py step")]
    found = arrivals({0: waits, 1: sorted(late + ends), 2: waits}, {})
    assert (found.latest, found.last[1], found.rounds) == (1, 4, 4)  # the first was cut
    assert steadily_last(found)
    one_task = [(0.0, 0.1, True, "train.py step"), (0.1, 6.0, False, "train.py save")]
    assert arrivals({0: waits, 1: one_task, 2: waits}, {}).rounds == 1


@pytest.mark.parametrize("world", [2, 3, 4, 8])
def test_ranks_as_fast_as_each_other_are_rarely_blamed(world: int) -> None:
    draw = random.Random(world)
    heavy = [
        seen(
            [
                [1.5 if draw.random() < 0.05 else draw.uniform(0.05, 0.4) for _ in range(world)]
                for _ in range(30)
            ]
        )
        for _ in range(60)
    ]
    assert sum(map(steadily_last, heavy)) <= 1


@pytest.mark.parametrize("world", [2, 3, 4, 8])
def test_a_rank_that_is_slower_by_a_quarter_is_found_where_steps_differ_by_a_tenth(
    world: int,
) -> None:
    draw = random.Random(world)
    found = [
        seen(
            [
                [draw.gauss(0.25 if rank else 0.31, 0.025) for rank in range(world)]
                for _ in range(30)
            ]
        )
        for _ in range(20)
    ]
    assert sum(map(steadily_last, found)) >= 19
    alike = [
        seen([[draw.gauss(0.25, 0.025) for _ in range(world)] for _ in range(30)])
        for _ in range(20)
    ]
    assert not any(map(steadily_last, alike))


def test_ranks_that_are_last_in_turns_are_not_worth_more_samples() -> None:
    found = seen([[0.1 + 0.4 * (step % 3 == rank) for rank in range(3)] for step in range(6)])
    assert not steadily_last(found)
    assert not worth_more(found)


def test_a_short_round_of_another_rank_leaves_a_long_wait_for_one_worth_more_samples() -> None:
    found = seen([(0.14, 0.1, 0.1), (0.1, 1.5, 0.1)])
    assert (found.last, found.latest) == ({0: 1, 1: 1, 2: 0}, 1)
    assert worth_more(found)


def test_a_rank_that_saves_now_and_then_is_not_late_however_often_it_was_seen_to_save() -> None:
    works = [(0.15, 0.15) if step % 10 else (1.15, 0.15) for step in range(90)]
    places = ("train.py save", "train.py step")
    turns = {0: 90, 1: 90}
    assert not steadily_last(arrivals(job(works, places), turns))


def test_a_rank_whose_own_work_takes_most_of_each_step_is_late_whatever_it_is() -> None:
    works, places = [(0.45, 0.05)] * 16, ("train.py summary", "train.py step")
    assert steadily_last(arrivals(job(works, places), {0: 40, 1: 40}))
    works = [(0.17, 0.1)] * 16
    assert not steadily_last(arrivals(job(works, places), {0: 40, 1: 40}))


def test_clocks_that_differ_make_nobody_late() -> None:
    draw = random.Random(5)
    steps = [draw.uniform(0.2, 0.6) for _ in range(20)]
    apart = job([(took - 0.1, took - 0.1) for took in steps], apart_s=0.08)
    assert not steadily_last(arrivals(apart, {}))
    late = job([(0.1, 0.3)] * 20, apart_s=0.08)
    assert arrivals(late, {}).latest == 1


def test_one_rank_alone_is_late_for_nobody() -> None:
    found = arrivals({0: job([(0.1,)] * 9)[0]}, {})
    assert (found.latest, steadily_last(found), worth_more(found)) == (None, False, False)


def test_turns_are_counted_in_the_outermost_loop() -> None:
    main = Frame("<module>", "train.py", 90)
    stacks = [
        [main, Frame("fit", "train.py", line), Frame("inner", "train.py", number)]
        for _ in range(5)
        for line, number in ((10, 1), (10, 2), (10, 1), (11, 3))
    ]
    assert turns_of(stacks) == 5
    assert turns_of([]) == 0


def test_a_wait_in_which_a_thread_ran_is_several() -> None:
    """The work of the others takes too little to be met by samples, and so does the collective."""
    waits, works = [(0.0, 6.0, True, "train.py step")], [(0.0, 6.0, False, "train.py fetch")]
    ran = [0.9, 1.8, 2.7, 3.6, 4.5, 5.4]
    whole = arrivals({0: waits, 1: waits, 2: works}, {})
    assert (whole.latest, whole.rounds) == (2, 0)
    broken = broken_up(waits, ran)
    assert [at for at, _, inside, _ in broken if not inside] == ran
    found = arrivals({0: broken, 1: broken, 2: works}, {})
    assert (found.latest, found.last[2], found.rounds) == (2, 6, 6)
    assert steadily_last(found)


def test_what_samples_tell_apart_is_not_broken_up() -> None:
    own = [(0.0, 0.2, True, "train.py step"), (0.2, 1.0, False, "train.py step")]
    assert broken_up(own, [0.1, 0.5]) == own
    edges = [(0.0, 1.0, True, "train.py step")]
    assert broken_up(edges, [0.05, 0.95]) == edges


def test_a_server_without_a_number_comes_last_to_nothing() -> None:
    steps = [(0.1 * step, 0.1 * step + 0.02, False, "step") for step in range(30)]
    meets = [(0.1 * step + 0.02, 0.1 * step + 0.1, True, "step") for step in range(30)]
    rank = tuple(sorted((*steps, *meets)))
    serves = ((0.0, 3.0, False, "serve"),)

    server = number_of(4711)
    assert arrivals({0: rank, 1: rank, server: serves}, {}).ranks == (0, 1)
    assert arrivals({0: rank, 1: serves}, {}).latest == 1, "a rank is late however it stands"


def test_stays_alone_are_counted_once_for_each_time_that_others_were_out_between() -> None:
    alone, step = (0.0, 1.2), (0.1, 0.1)
    found = seen([alone, *[step] * 4, alone, alone])

    assert found.stays == {0: 0, 1: 2}, "the last two have nothing between them"
    assert found.in_stay == 1
    assert together([found, found]).stays[1] == 3, "one goes on from the first span to the second"
    assert together([found, seen([step, alone])]).stays[1] == 3


def test_a_blink_between_two_waits_counts_wherever_it_lies_on_the_grid() -> None:
    late = [(0.0, 6.9, False, "train.py load")]
    for shift in (0.0, 0.004, 0.009, 0.014):
        edges = [0.0, *(at + shift for at in (1.2, 2.4, 3.6, 4.8, 6.0)), 6.9]
        waits = [
            piece
            for start, end in pairwise(edges)
            for piece in (
                (start, end - 0.006, True, "train.py step"),
                (end - 0.006, end, False, "train.py step"),
            )
        ]
        found = arrivals({0: waits, 1: late}, {})
        assert found.stays == {0: 0, 1: 6}
        assert found.times_last == (6, 6)
        assert steadily_last(found)


def test_who_asks_one_rank_by_rpc_waits_for_no_meeting() -> None:
    torch = "/env/lib/python3.11/site-packages/torch/"
    own = Frame("gather", "/job/kvstore.py", 37)
    asks = (own, Frame("rpc_sync", torch + "distributed/rpc/api.py", 810))
    meets = (own, Frame("all_reduce", torch + "distributed/distributed_c10d.py", 2500))

    assert waited_in(asks) not in AMONG_RANKS
    assert waited_in(meets) in AMONG_RANKS
