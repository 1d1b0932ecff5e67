"""Ranks and rows: which cell is judged, which is the smallest, what a larger one outgrows, and
what the climb says of it.
"""

from __future__ import annotations

from trainprobe.causes.commands import again
from trainprobe.causes.scene import Scene
from trainprobe.facts import Facts, KnobTried, Plan, Rung
from trainprobe.model.facts import Fact
from trainprobe.waits import SuspectGroup
from trainprobe.waits.climb_result import climb_of
from trainprobe.waits.grid import smallest_failing, steady
from trainprobe.waits.groups import failing_rungs, outgrown_rungs


def cell(
    ranks: int,
    rows: int | None,
    outcome: str,
    *,
    began: float = 0.0,
    took_s: float = 2.0,
    resumed: int = 0,
    knob: str = "",
) -> Rung:
    size = f"user_script@{ranks}" + (f"x{rows}" if rows is not None else "")
    name = f"{size}#{knob}" if knob else size
    of_cell = size if knob else ""
    return Rung(
        ("E1",),
        name,
        None,
        1000,
        "user_script",
        "",
        ranks,
        outcome,
        took_s,
        rows=rows,
        began=began,
        resumed=resumed,
        knob=knob,
        of_cell=of_cell,
    )


def tried(
    knob: str, outcome: str, of_cell: str = "user_script@2x1000", *, applied: bool | None = True
) -> KnobTried:
    name, _, value = knob.partition("=")
    return KnobTried(
        ("E9",), f"{of_cell}#{knob}", None, knob, name, value, of_cell, outcome, applied, 1.0
    )


def judged(*facts: Fact) -> list[str]:
    return [rung.cell for rung in failing_rungs(Facts(facts))]


def test_of_a_grid_the_smallest_failing_cell_is_judged() -> None:
    grid = [
        cell(1, 1000, "passed"),
        cell(2, 1000, "timed_out"),
        cell(4, 1000, "timed_out"),
        cell(2, 100, "passed"),
    ]

    assert judged(*grid) == ["user_script@2x1000"]


def test_the_cheapest_is_the_smallest_and_of_two_alike_the_one_with_fewer_ranks() -> None:
    grid = [cell(10, 100, "crashed"), cell(1, 1000, "crashed"), cell(1, 100, "passed")]

    found = smallest_failing(Facts(grid))

    assert found is not None
    assert found.cell == "user_script@1x1000"


def test_without_rows_the_largest_is_judged_as_ever() -> None:
    assert judged(
        cell(2, None, "timed_out"), cell(4, None, "timed_out"), cell(1, None, "passed")
    ) == ["user_script@4"]


def test_what_a_larger_cell_outgrows_is_told_and_not_judged() -> None:
    facts = Facts([cell(2, 2, "failed"), cell(2, 100, "passed"), cell(1, 2, "passed")])

    assert failing_rungs(facts) == ()
    assert [rung.cell for rung in outgrown_rungs(facts)] == ["user_script@2x2"]


def test_a_larger_cell_in_one_direction_only_outgrows_nothing() -> None:
    assert judged(cell(2, 1000, "crashed"), cell(4, 100, "passed"), cell(1, 10000, "passed")) == [
        "user_script@2x1000"
    ]


def test_a_changed_cell_is_neither_a_failure_nor_a_pass_of_the_command() -> None:
    assert (
        judged(
            cell(2, 100, "passed"),
            cell(2, 1000, "passed"),
            cell(2, 1000, "crashed", knob="threads=1"),
        )
        == []
    )
    assert judged(cell(2, 1000, "crashed"), cell(2, 1000, "passed", knob="workers=0")) == [
        "user_script@2x1000"
    ]


def test_of_a_cell_that_was_run_again_the_last_answer_counts() -> None:
    assert judged(cell(2, 1000, "crashed"), cell(2, 1000, "passed", resumed=1)) == []
    assert judged(cell(2, 1000, "crashed"), cell(2, 1000, "skipped", resumed=1)) == [
        "user_script@2x1000"
    ]


def test_the_climb_says_what_fails_what_passes_beside_it_and_what_heals() -> None:
    grid = [
        cell(1, 100, "passed"),
        cell(1, 1000, "passed"),
        cell(2, 100, "passed"),
        cell(2, 1000, "timed_out"),
    ]

    climb = climb_of(
        Facts(
            [
                Plan(nproc=2, ranks=(1, 2), rows=(100, 1000)),
                *grid,
                tried("workers=0", "passed"),
                tried("threads=1", "timed_out"),
            ]
        )
    )

    assert climb is not None
    assert climb.says == (
        "Smallest failing cell: 2 ranks x 1000 rows (hung); 1 rank x 1000 rows and 2 ranks x 100 "
        "rows pass. workers=0 heals it."
    )
    assert (climb.healed_by, climb.not_healed_by) == (("workers=0",), ("threads=1",))
    assert climb.smallest_failing is not None
    assert (climb.smallest_failing.ranks, climb.smallest_failing.rows) == (2, 1000)


def test_a_knob_without_effect_neither_heals_nor_fails_to() -> None:
    facts = Facts(
        [
            Plan(ranks=(2,)),
            cell(2, 1000, "crashed"),
            tried("workers=0", "passed", applied=False),
            tried("start=spawn", "skipped"),
        ]
    )

    climb = climb_of(facts)

    assert climb is not None
    assert (climb.healed_by, climb.not_healed_by) == ((), ())


def test_a_failure_that_does_not_come_back_is_not_steady() -> None:
    facts = Facts(
        [
            Plan(ranks=(2,)),
            cell(2, 1000, "crashed"),
            tried("again=1", "passed"),
            tried("workers=0", "passed"),
        ]
    )

    climb = climb_of(facts)

    assert climb is not None
    assert climb.steady is False
    assert steady(facts, "user_script@2x1000") is False
    assert "does not fail every time" in climb.says
    assert climb.healed_by == ("workers=0",)


def test_the_total_leaves_out_the_pause_before_a_climb_was_taken_up_again() -> None:
    cells = [
        cell(1, 100, "passed", began=100.0),
        cell(2, 100, "passed", began=103.0),
        cell(2, 1000, "passed", began=5000.0, took_s=4.0, resumed=1),
    ]

    climb = climb_of(Facts([Plan(ranks=(1, 2)), *cells]))

    assert climb is not None
    assert (climb.total_s, climb.cells_s) == (9.0, 8.0)


def test_next_by_hand_is_a_size_in_between_where_no_knob_heals() -> None:
    wide = climb_of(
        Facts(
            [
                cell(2, 100, "passed"),
                cell(2, 10000, "crashed"),
                tried("threads=1", "crashed", "user_script@2x10000"),
            ]
        )
    )
    healthy = climb_of(
        Facts(
            [
                Plan(nproc=2, planned={"rows": 5000, "ranks": 8}),
                cell(2, 100, "passed"),
                cell(2, 1000, "passed"),
            ]
        )
    )

    assert wide is not None
    assert wide.next.startswith("2 ranks x 1000 rows")
    assert healthy is not None
    assert healthy.next == "2 ranks x 5000 rows"


def test_an_ordinary_ladder_is_no_climb() -> None:
    assert (
        climb_of(Facts([Plan(nproc=2), cell(1, None, "passed"), cell(2, None, "passed")])) is None
    )


def test_what_a_fix_is_verified_with_is_the_smallest_failing_cell() -> None:
    plan = Plan(nproc=4, ranks=(1, 2, 4), rows=(100, 1000), argv=("train.py", "--rows", "{rows}"))
    group = SuspectGroup(
        "user_script@2x1000", "user_script", (), "failed-first", "", "crash", world_size=2
    )

    assert (
        again(Scene(Facts([plan]), group))
        == "trainprobe diagnose --ranks 2 --rows 1000 --only user_script -- train.py --rows {rows}"
    )
