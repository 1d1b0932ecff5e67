"""The earliest call at which ranks part, from their journals."""

from __future__ import annotations

from trainprobe.facts.collectives import CollectiveCall
from trainprobe.waits.divergence import earliest_divergence

Row = tuple[str, int, tuple[int, ...]]  # operation, line, sizes


def journal(
    rank: int, *rows: Row, file: str = "/job/train.py", last_open: bool = False
) -> list[CollectiveCall]:
    return [
        CollectiveCall(
            ("E1",),
            "user_script@4",
            rank,
            number,
            op,
            "",
            sizes,
            "float32",
            file,
            line,
            "step",
            100.0 + number,
            not (last_open and number == len(rows) - 1),
        )
        for number, (op, line, sizes) in enumerate(rows)
    ]


STEP: Row = ("all_reduce", 10, (4,))


def test_equal_journals_do_not_part() -> None:
    calls = journal(0, STEP, STEP) + journal(1, STEP, STEP)

    assert earliest_divergence(calls, [0, 1], hung=False) is None


def test_another_operation_is_told_with_its_minority_first() -> None:
    calls = [
        call for rank in (0, 2, 3) for call in journal(rank, STEP, ("barrier", 20, ()))
    ] + journal(1, STEP, ("broadcast", 30, (1,)))

    found = earliest_divergence(calls, range(4), hung=False)

    assert found is not None
    assert (found.kind, found.position, found.camps) == ("operation", 1, ((1,), (0, 2, 3)))
    assert found.calls[0] == "broadcast [1] float32 at train.py:30"


def test_another_size_at_one_call_site_is_a_shape() -> None:
    calls = journal(0, STEP) + journal(1, ("all_reduce", 10, (5,))) + journal(2, STEP)

    found = earliest_divergence(calls, range(3), hung=False)

    assert found is not None
    assert (found.kind, found.camps) == ("shape", ((1,), (0, 2)))


def test_sizes_may_differ_where_the_operation_allows_it() -> None:
    calls = journal(0, ("all_gather_object", 10, (3,))) + journal(
        1, ("all_gather_object", 10, (9,))
    )

    assert earliest_divergence(calls, [0, 1], hung=False) is None


def test_two_operations_the_other_way_round_are_an_order() -> None:
    first, second = ("all_reduce", 10, (4,)), ("broadcast", 20, (4,))
    calls = journal(0, first, second) + journal(1, second, first)

    found = earliest_divergence(calls, [0, 1], hung=False)

    assert found is not None
    assert found.kind == "order"


def test_one_collective_from_two_call_sites_is_right_when_the_ranks_agree_again() -> None:
    calls = journal(0, ("broadcast", 7, (4,)), STEP) + journal(1, ("broadcast", 9, (4,)), STEP)

    assert earliest_divergence(calls, [0, 1], hung=True) is None


def test_a_silent_pairing_is_found_where_it_began_not_where_it_broke() -> None:
    extra: Row = ("all_reduce", 99, (4,))
    calls = journal(0, STEP, STEP, ("barrier", 50, ())) + journal(
        1, STEP, extra, STEP, ("barrier", 50, ())
    )

    found = earliest_divergence(calls, [0, 1], hung=True)

    assert found is not None
    assert (found.kind, found.position) == ("call-site", 1)


def test_a_rank_without_the_call_counts_only_in_a_hung_job() -> None:
    calls = journal(0, STEP, STEP, last_open=True) + journal(1, STEP)

    assert earliest_divergence(calls, [0, 1], hung=False) is None
    found = earliest_divergence(calls, [0, 1], hung=True)
    assert found is not None
    assert (found.kind, found.camps) == ("missing", ((1,), (0,)))


def test_a_rank_still_inside_an_earlier_call_is_not_missing() -> None:
    calls = journal(0, STEP, STEP, last_open=True) + journal(1, STEP, last_open=True)

    assert earliest_divergence(calls, [0, 1], hung=True) is None


def test_point_to_point_calls_are_rightly_different() -> None:
    calls = journal(0, ("send", 5, (4,))) + journal(1, ("recv", 8, (4,)))

    assert earliest_divergence(calls, [0, 1], hung=True) is None
