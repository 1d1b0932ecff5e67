"""A fact is built from the fields of its record by their types."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class Seat(Fact):
    name: str = "none"
    row: int | None = None
    width: float = 0.5
    taken: bool | None = None
    tags: tuple[str, ...] = ()
    places: tuple[int, ...] = ()
    size: tuple[int, int] = (0, 0)


def record(**data: object) -> Evidence:
    return Evidence("E1", "seat", cell="job", data=data)


def test_a_fact_reads_the_fields_of_its_record_by_their_types() -> None:
    data = {"name": "a", "row": 3, "width": 2, "taken": True, "tags": ["x", 1], "places": [1, "y"]}
    assert fields.fact(Seat, record(**data)) == Seat(
        ("E1",), "job", None, "a", 3, 2.0, taken=True, tags=("x",), places=(1,)
    )


def test_missing_fields_and_those_of_other_types_have_their_defaults() -> None:
    assert fields.fact(Seat, record(name=None, size=[1, 2])) == Seat(("E1",), "job")


def test_evidence_cell_and_rank_are_not_the_records_to_say() -> None:
    data = record(evidence=["E9"], cell="other", rank=7, name="a")
    assert fields.fact(Seat, data) == Seat(("E1",), "job", None, "a")
    assert fields.fact(Seat, data, rank=2, name="b") == Seat(("E1",), "job", 2, "b")


@pytest.mark.parametrize("data", [{"row": "3"}, {"row": True}, {"taken": 1}, {"tags": "x"}])
def test_a_field_of_another_type_makes_the_record_unreadable(data: dict[str, object]) -> None:
    with pytest.raises(fields.UnreadableError):
        fields.fact(Seat, record(**data))
