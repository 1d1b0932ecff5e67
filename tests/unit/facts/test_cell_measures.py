"""What is measured of the user's command, and what a knob did: from evidence to facts."""

from __future__ import annotations

import pytest

from trainprobe.facts import KnobTried, Measured, Rung, read
from trainprobe.facts.cell_measures import CellSize, size_of
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import JOB


def looked(kind: str, cell: str, **data: object) -> Evidence:
    return Evidence("E7", kind, JOB, cell, "ladder", 100.0, 1.0, data=data)


@pytest.mark.parametrize(
    ("cell", "size"),
    [
        ("user_script@4", CellSize(4)),
        ("user_script@4x1000", CellSize(4, 1000)),
        ("user_script@4x1000#workers=0", CellSize(4, 1000, "workers=0")),
        ("user_script@4#name=a@b#c", CellSize(4, None, "name=a@b#c")),
        ("", CellSize()),
        ("user_script@many", CellSize()),
    ],
)
def test_the_name_of_a_cell_is_its_size(cell: str, size: CellSize) -> None:
    assert size_of(cell) == size


def test_a_measure_of_a_cell_carries_its_size_where_it_has_none_of_its_own() -> None:
    rows = [
        {"name": "took_s", "value": 3.5, "unit": "s"},
        {"name": "pss", "value": 9, "unit": "bytes", "rank": 1, "rows": 7},
        {"name": "broken", "value": "x"},
    ]

    facts = read([looked("cell.measures", "user_script@2x100#workers=0", measures=rows)])

    first, second = facts.of(Measured)
    assert (first.probe, first.name, first.value, dict(first.labels)) == (
        "user_script",
        "took_s",
        3.5,
        {"ranks": 2, "rows": 100, "knob": "workers=0"},
    )
    assert (second.rank, second.labels["rows"]) == (1, 7)
    assert not facts.unreadable


def test_a_rung_with_a_knob_is_also_an_experiment() -> None:
    record = looked(
        "rung",
        "user_script@2x100#workers=0",
        probe="user_script",
        nproc=2,
        rows=100,
        knob="workers=0",
        of_cell="user_script@2x100",
        outcome="passed",
        applied=True,
    )

    facts = read([record])

    (tried,), (rung,) = facts.of(KnobTried), facts.of(Rung)
    assert (tried.name, tried.value, tried.of_cell, tried.heals) == (
        "workers",
        "0",
        "user_script@2x100",
        True,
    )
    assert (rung.knob, rung.rows, rung.began) == ("workers=0", 100, 100.0)


def test_a_knob_without_effect_says_why_and_heals_nothing() -> None:
    data = {
        "probe": "user_script",
        "knob": "workers=0",
        "of_cell": "user_script@2",
        "outcome": "skipped",
        "applied": False,
    }
    facts = read(
        [
            looked(
                "rung",
                "user_script@2#workers=0",
                **data,
                skipped_because="it built no loader",
                applied_says="no workers",
            )
        ]
    )

    (tried,) = facts.of(KnobTried)
    assert (tried.heals, tried.answered, tried.says) == (False, False, "it built no loader")
    assert read([looked("rung", "user_script@2", probe="user_script")]).of(KnobTried) == ()
