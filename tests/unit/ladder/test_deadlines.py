"""Deadlines that a cell learns from smaller ones."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from trainprobe.config import Settings
from trainprobe.ladder.cells import Cell
from trainprobe.ladder.deadlines import LONGEST_S, CellTiming, deadlines
from trainprobe.ladder.pace import Pace

DEFAULT = Settings()


def seen(
    nproc: int, rows: int | None, took_s: float, *, first_s: float = 4.0, quiet_s: float = 1.0
) -> CellTiming:
    return CellTiming(Cell(nproc, rows), took_s, first_s, quiet_s)


def test_where_nothing_was_learnt_the_settings_hold() -> None:
    found = deadlines(Cell(1, 2), (), DEFAULT)

    assert (found.first_output_s, found.stall_s, found.run_s) == (
        DEFAULT.first_output_s,
        DEFAULT.stall_s,
        DEFAULT.run_s,
    )
    assert found.silent_s == math.inf
    assert "no smaller cell" in found.sources["stall_s"]
    assert (
        deadlines(Cell(1, 2), [seen(2, 2, 5.0), seen(1, 100, 5.0)], DEFAULT) == found
    )  # neither is smaller


def test_one_smaller_cell_teaches_the_rhythm_but_no_growth() -> None:
    found = deadlines(Cell(1, 100), [seen(1, 2, 5.0, first_s=6.0, quiet_s=2.0)], DEFAULT)

    assert found.first_output_s == 18.0
    assert found.stall_s == 10.0  # the floor
    assert found.silent_s == math.inf
    assert found.run_s == DEFAULT.run_s


def test_silence_between_steps_is_multiplied_above_the_floor() -> None:
    assert deadlines(Cell(1, 100), [seen(1, 2, 30.0, quiet_s=9.0)], DEFAULT).stall_s == 27.0


def test_more_ranks_share_the_machine() -> None:
    assert deadlines(Cell(4, 2), [seen(1, 2, 10.0, quiet_s=2.0)], DEFAULT).stall_s == 24.0


def test_growth_of_two_sizes_is_carried_on() -> None:
    """10 s and 20 s for 10 and 110 rows is 0.1 s a row: 110 s for 1010 rows, three times that is
    the deadline.
    """
    found = deadlines(Cell(1, 1010), [seen(1, 10, 10.0), seen(1, 110, 20.0)], DEFAULT)

    assert found.run_s == pytest.approx(330.0)
    assert "to the power 1.0" in found.sources["run_s"]


def test_quadratic_growth_is_seen_from_three_sizes_and_no_steeper() -> None:
    points = [seen(1, 1, 10.0), seen(1, 101, 11.0), seen(1, 201, 14.0)]

    assert "to the power 2.0" in deadlines(Cell(1, 401), points, DEFAULT).sources["run_s"]
    assert deadlines(Cell(1, 401), points, DEFAULT).run_s == pytest.approx(
        3 * (10 + 4 * 4), rel=0.01
    )
    assert deadlines(Cell(1, 10**6), points, DEFAULT).run_s == LONGEST_S
    assert (
        "to the power 2.0"
        in deadlines(Cell(1, 401), [*points[:2], seen(1, 201, 40.0)], DEFAULT).sources["run_s"]
    )


def test_silence_that_could_hide_growth_is_given_the_time_for_it() -> None:
    """A silence of 0.1 s at 2 and at 100 rows may hide 0.05 s that grow with the data: 100 000
    rows may then be silent for a minute.
    """
    points = [seen(1, 2, 5.0, quiet_s=0.1), seen(1, 100, 5.0, quiet_s=0.1)]

    assert deadlines(Cell(1, 1000), points, DEFAULT).silent_s == 25.0
    assert deadlines(Cell(1, 100_000), points, DEFAULT).silent_s > 60


def test_times_that_the_user_has_set_are_never_exceeded() -> None:
    settings = replace(DEFAULT, first_output_s=5.0, stall_s=4.0, run_s=20.0)
    found = deadlines(
        Cell(1, 1000), [seen(1, 2, 30.0, first_s=20.0, quiet_s=9.0), seen(1, 100, 60.0)], settings
    )

    assert (found.first_output_s, found.stall_s, found.run_s) == (5.0, 4.0, 20.0)
    assert found.sources["run_s"] == "the settings"


def test_the_evidence_says_the_numbers_and_where_they_are_from() -> None:
    row = deadlines(Cell(1, 100), [seen(1, 2, 5.0)], DEFAULT).row()

    assert set(row) == {
        "first_output_s",
        "stall_s",
        "run_s",
        "from",
    }  # what is infinite is left out: JSON has no word for it
    assert "1 rank, 2 rows" in str(row["from"])


def test_the_pace_runs_to_the_end() -> None:
    pace = deadlines(Cell(1, 100), [seen(1, 2, 5.0)], DEFAULT).pace(Pace())

    assert pace.to_its_end
    assert pace.stall_s == 10.0
