"""Cells: their names, their order, and what becomes of the placeholders."""

from __future__ import annotations

from trainprobe.ladder.cells import Cell, filled, grid, smallest
from trainprobe.targets.launch import whole


def test_a_name_says_ranks_rows_and_knob() -> None:
    cell = Cell(4, 1000)

    assert Cell(4).name("user_script") == "user_script@4"
    assert cell.name("user_script") == "user_script@4x1000"
    assert cell.with_knob("workers=0", "user_script") == Cell(
        4, 1000, "workers=0", "user_script@4x1000"
    )
    assert (
        cell.with_knob("workers=0", "user_script").name("user_script")
        == "user_script@4x1000#workers=0"
    )


def test_the_grid_begins_with_the_cheapest() -> None:
    assert [(cell.nproc, cell.rows) for cell in grid((1, 2, 4), (2, 100))] == [
        (1, 2),
        (2, 2),
        (4, 2),
        (1, 100),
        (2, 100),
        (4, 100),
    ]
    assert [(cell.nproc, cell.rows) for cell in grid((1, 2))] == [(1, None), (2, None)]


def test_a_cell_dominates_what_has_no_more_of_either() -> None:
    assert Cell(2, 100).dominates(Cell(2, 2))
    assert Cell(2, 100).dominates(Cell(1, 100))
    assert not Cell(2, 100).dominates(Cell(4, 2))
    assert not Cell(4, 2).dominates(Cell(2, 100))


def test_the_smallest_is_the_first_of_the_grid() -> None:
    assert smallest([Cell(4, 100), Cell(1, 1000), Cell(2, 100)]) == Cell(2, 100)
    assert smallest([]) is None


def test_placeholders_stand_anywhere_in_a_word() -> None:
    words = (
        "torchrun",
        "--nproc-per-node={ranks}",
        "train.py",
        "--rows",
        "{rows}",
        "--name",
        "r{rows}x{ranks}",
    )

    assert filled(words, Cell(2, 100), whole(2)) == (
        "torchrun",
        "--nproc-per-node=2",
        "train.py",
        "--rows",
        "100",
        "--name",
        "r100x2",
    )
    assert filled(("train.py", "{rows}"), Cell(2), whole(2)) == ("train.py", "{rows}")
