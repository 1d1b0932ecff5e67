"""The matrix of a climb: every cell is there, it fits, and colour changes no word."""

from __future__ import annotations

import re

import pytest

from trainprobe.model.diagnosis import Climb, ClimbCell, Diagnosis, LadderRow
from trainprobe.report.json_report import read_report, report_of, report_text
from trainprobe.report.lines import plain
from trainprobe.report.matrix_section import matrix_lines
from trainprobe.report.text import quiet_text_of, text_of

SMALLEST = ClimbCell(
    "user_script@2x1000", 2, 1000, "", "timed_out", 24.2, None, "no progress for 20 s"
)
CLIMB = Climb(
    cells=(
        ClimbCell("user_script@1x2", 1, 2, "", "passed", 0.8),
        ClimbCell("user_script@1x1000", 1, 1000, "", "passed", 3.0),
        ClimbCell("user_script@2x2", 2, 2, "", "passed", 1.1),
        SMALLEST,
        ClimbCell(
            "user_script@4x1000",
            4,
            1000,
            "",
            "skipped",
            0.0,
            None,
            "user_script@2x1000 did not pass",
        ),
        ClimbCell(
            "user_script@2x1000#workers=0", 2, 1000, "workers=0", "passed", 3.4, applied=True
        ),
        ClimbCell("user_script@2x1000#threads=1", 2, 1000, "threads=1", "timed_out", 24.0, None),
        ClimbCell(
            "user_script@2x1000#evaluation=off",
            2,
            1000,
            "evaluation=off",
            "skipped",
            0.0,
            None,
            "the script has no evaluation that is known",
        ),
    ),
    smallest_failing=SMALLEST,
    healed_by=("workers=0",),
    not_healed_by=("threads=1",),
    says=(
        "Smallest failing cell: 2 ranks x 1000 rows (hung); 1 rank x 1000 rows and 2 ranks x 2 rows"
        " pass. workers=0 heals it."
    ),
    next="2 ranks x 1000 rows again",
    total_s=61.0,
    cells_s=58.4,
)
ROWS = tuple(
    LadderRow(1000, "user_script", cell.outcome, cell.took_s, cell=cell.cell, nproc=cell.ranks)
    for cell in CLIMB.cells
)
REPORT = report_of(
    Diagnosis("hung", conclusive=True, climb=CLIMB, ladder=ROWS), command="diagnose", case="here"
)


def matrix(climb: Climb = CLIMB, width: int = 100) -> list[str]:
    report = report_of(
        Diagnosis("hung", conclusive=True, climb=climb), command="diagnose", case="here"
    )
    return [plain(line) for line in matrix_lines(report, width)]


def test_every_cell_stands_in_its_place() -> None:
    assert matrix() == [
        "climb  rows         2         1000",
        "       1 rank   0.8 s        3.0 s",
        "       2 ranks  1.1 s  HUNG 24 s <",
        "       4 ranks      .            .",
        "knobs  workers=0       passed            3.4 s  heals it",
        "       threads=1       HUNG               24 s  does not heal it",
        (
            "       evaluation=off  skipped                  the script has no evaluation that is"
            " known"
        ),
        "       total 1 min 01 s; its cells took 58 s",
    ]


def test_the_first_screen_says_what_fails_and_what_comes_next() -> None:
    first = text_of(REPORT).split("\n\n")[1]

    assert "Smallest failing cell: 2 ranks x 1000 rows (hung)" in first
    assert "workers=0 heals it." in first
    assert "next by hand: 2 ranks x 1000 rows again" in first
    assert "Smallest failing cell" in quiet_text_of(REPORT)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_grid_of_any_size_fits(width: int) -> None:
    cells = tuple(
        ClimbCell(
            f"user_script@{ranks}x{10**power}",
            ranks,
            10**power,
            "",
            "crashed" if power > 5 else "passed",
            4000.0,
        )
        for ranks in (1, 2, 4, 8)
        for power in range(15)
    )
    lines = matrix(Climb(cells, smallest_failing=cells[6]), width)

    assert max(map(len, lines)) <= width
    assert sum(line.count("CRASHED") for line in lines) == 4 * 9


def test_a_knob_with_control_characters_is_cleaned() -> None:
    cells = (SMALLEST, ClimbCell("c", 2, 1000, "a\x1b[31m=\n1", "passed", 1.0))

    assert not re.search(r"[\x00-\x1f]", "".join(matrix(Climb(cells, SMALLEST))))


def test_cells_of_knobs_are_no_rows_of_the_ladder_in_words() -> None:
    assert "#workers" not in text_of(REPORT)
    assert "On 2 x 1000: timed out" in text_of(REPORT)


def test_it_survives_json() -> None:
    assert read_report(report_text(REPORT)).climb == CLIMB
